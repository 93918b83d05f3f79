package store

import (
	"errors"
	"net"
)

// A guard is a connection of redigo's, which takes memory for a reply as soon as the reply announces its length: 16
// bytes for each element, so that the 13 bytes of "*2147483647" would end the process. With a guard, a reply that
// announces more than Redis ever sends is an error of the connection instead. A guard costs a round trip a nanosecond
// for each byte of a reply, except those in strings.
//
// A guard sees what comes over the network. A connection over TLS has none: nobody but Redis has written what comes
// there.
type guard struct {
	net.Conn

	kind   byte // the first byte of the line that is being read; 0: no line is
	length int  // that the line has announced so far
	string int  // bytes of a string that are still to come, with the end of its line

	elements, announced int // of the current reply: still to come, and in all
}

// The most that a reply of Redis has.
const (
	maxString   = 512 << 20 // bytes; proto-max-bulk-len is no larger by default
	maxElements = 1 << 20   // the sessions of one user, say
	asArray     = 1 << 10   // elements that an array counts for besides, since redigo goes down into each
)

var errAbsurd = errors.New("a reply announces an absurd length")

func (g *guard) Read(p []byte) (int, error) {
	n, err := g.Conn.Read(p)
	if !g.sees(p[:n]) {
		return 0, errAbsurd
	}
	return n, err
}

// sees reports whether p goes on with a reply that announces no absurd length. It knows only as much of the protocol
// as it needs for that; redigo checks the rest.
func (g *guard) sees(p []byte) bool {
	for i := 0; i < len(p); i++ {
		c := p[i]
		switch {
		case g.string > 0:
			n := min(g.string, len(p)-i)
			g.string -= n
			i += n - 1
		case g.kind == 0:
			g.kind, g.length = c, 0
		case c == '\n':
			g.elements = max(g.elements-1, 0)
			switch g.kind {
			case '$':
				g.string = g.length + len("\r\n")
			case '*':
				g.elements += g.length
				g.announced += g.length + asArray
			}
			g.kind = 0
			if g.announced > maxElements {
				return false
			}
			if g.elements == 0 {
				g.announced = 0
			}
		case g.kind != '$' && g.kind != '*':
		case c == '-': // there is nothing
			g.kind = ':'
		case '0' <= c && c <= '9':
			g.length = 10*g.length + int(c-'0')
			if g.length > maxString {
				return false
			}
		}
	}
	return true
}

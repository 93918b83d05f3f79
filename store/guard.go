package store

import (
	"errors"
	"net"
)

// A guard protects redigo from replies that announce an absurd length. redigo allocates memory for a reply as
// soon as the reply announces its length, 16 bytes for each element: the 13 bytes of "*2147483647" would end
// the process. With a guard, a reply that announces more than Redis ever sends is an error of the connection
// instead. A guard costs a round trip a nanosecond for each byte of a reply, except those in strings.
//
// A connection over TLS has no guard: only Redis can write to it.
type guard struct {
	net.Conn

	kind   byte // the first byte of the line that is being read; 0: a new line begins
	length int  // the length that the line has announced so far
	string int  // bytes of a string that are still missing, including the end of its line

	elements, announced int // of the current reply: those still missing, and all
}

// The limits of a reply.
const (
	maxString   = 512 << 20 // bytes; proto-max-bulk-len is no larger by default
	maxElements = 1 << 20   // for example, the sessions of one user
	asArray     = 1 << 10   // what an array counts for in addition to its elements, since redigo recurses into it
)

var errAbsurd = errors.New("a reply announces an absurd length")

func (g *guard) Read(p []byte) (int, error) {
	n, err := g.Conn.Read(p)
	if !g.sees(p[:n]) {
		return 0, errAbsurd
	}
	return n, err
}

// sees reads the next bytes of a reply, and returns false if they announce an absurd length. It knows only as
// much of the protocol as it needs for that; redigo checks the rest.
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
		case c == '-': // a null
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

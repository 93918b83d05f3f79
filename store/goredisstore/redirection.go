package goredisstore

import (
	"net"
	"strings"

	"github.com/a2139e8d/latchkey/locker/transport"
	"github.com/redis/go-redis/v9"
)

// maxRedirects of a round trip: one for a slot that has moved, the others for a slot that moves on.
const maxRedirects = 4

// A redirection is the node to which another node has redirected a round trip. The zero value means no
// redirection.
type redirection struct {
	address string
	ask     bool // for this round trip only, since the slot is moving
}

// redirected returns the node to which the whole round trip must be sent. If some of its commands were
// executed, there is none: they would be executed twice, and the other commands after them. Then the replies
// contain the redirection, and the caller may repeat the whole round trip.
func redirected(commands []transport.Command, replies []any) (to redirection) {
	for i, reply := range replies {
		refusal, _ := reply.(error)
		this := redirection{address: movedTo(refusal)}
		if address, ok := redis.IsAskError(refusal); ok {
			this = redirection{withBrackets(address), true}
		}
		switch {
		case this.address == "" && commands[i][0] == "PING": // without a key
		case this.address == "", to.address != "" && to != this:
			return redirection{}
		default:
			to = this
		}
	}
	return to
}

// movedTo returns the address in a MOVED, or "".
func movedTo(refusal error) string {
	address, _ := redis.IsMovedError(refusal)
	return withBrackets(address)
}

// withBrackets returns an address in the form of package net: Redis writes ::1:6379.
func withBrackets(address string) string {
	if i := strings.LastIndexByte(address, ':'); i >= 0 && strings.IndexByte(address, ':') < i && address[0] != '[' {
		return net.JoinHostPort(address[:i], address[i+1:])
	}
	return address
}

var asking = transport.Command{"ASKING"}

// sent returns the commands for the other node: with ASKING before each, if needed, since it applies to one
// command.
func (r redirection) sent(commands []transport.Command) []transport.Command {
	if !r.ask {
		return commands
	}
	both := make([]transport.Command, 0, 2*len(commands))
	for _, command := range commands {
		both = append(both, asking, command)
	}
	return both
}

// answered returns the replies to the commands without those to ASKING.
func (r redirection) answered(replies []any) []any {
	if !r.ask {
		return replies
	}
	own := make([]any, 0, len(replies)/2)
	for i := 1; i < len(replies); i += 2 {
		own = append(own, replies[i])
	}
	return own
}

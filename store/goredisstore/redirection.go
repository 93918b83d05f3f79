package goredisstore

import (
	"net"
	"strings"

	"github.com/a2139e8d/latchkey/locker/transport"
	"github.com/redis/go-redis/v9"
)

// maxRedirects of an exchange: one is for a slot that has moved, the others for one that moves on.
const maxRedirects = 4

// A redirection is where a node has sent an exchange. The zero value: nowhere.
type redirection struct {
	address string
	ask     bool // this once, since the slot is being moved
}

// redirected returns where an exchange is to be sent, whole. If some of its commands were executed
// it is not sent anywhere: these would be executed twice, and the others after them. Their
// redirection is the reply then, and those above may repeat all of it.
func redirected(commands []transport.Command, replies []any) (to redirection) {
	for i, reply := range replies {
		refusal, _ := reply.(error)
		this := redirection{address: movedTo(refusal)}
		if address, ok := redis.IsAskError(refusal); ok {
			this = redirection{withBrackets(address), true}
		}
		switch {
		case this.address == "" && commands[i][0] == "PING": // it has no key
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

// withBrackets returns an address as package net knows it: Redis writes ::1:6379.
func withBrackets(address string) string {
	if i := strings.LastIndexByte(address, ':'); i >= 0 && strings.IndexByte(address, ':') < i && address[0] != '[' {
		return net.JoinHostPort(address[:i], address[i+1:])
	}
	return address
}

var asking = transport.Command{"ASKING"}

// sent returns the commands as the other node wants them: ASKING is for one command.
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

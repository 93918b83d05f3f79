package scripting

import (
	"cmp"
	"context"
	"errors"
	"math/bits"
	"slices"
	"strings"
	"time"

	"github.com/a2139e8d/latchkey/locker/transport"
)

// An Exchange is one sending of commands, and their replies, as an observer sees it. Package middleware documents the
// fields, and converts an Exchange to its ExchangeEvent: so both have the same fields in the same order, and all are public.
type Exchange struct {
	Script         string
	Command        string
	Commands       int
	Node, Database string
	Moved, Asked   int
	Holds          int
	Sent, Received int
	Began          time.Time
	Took           time.Duration
	Status         string
	Err            error
}

// A purpose is what an Exchange says of its round trip.
type purpose struct {
	script *Script // nil: none
	holds  int
	now    time.Time // if the caller knows it
}

// Observe makes the runner call tell after each exchange, in the goroutine of the round trip.
func (r *Runner) Observe(tell func(context.Context, Exchange)) { r.observer.Store(&tell) }

// send sends commands, which are for a script or plain, and tells the observer, if there is one.
func (r *Runner) send(ctx context.Context, slot string, p purpose, commands []transport.Command) (replies []any, err error) {
	tell := r.observer.Load()
	if tell == nil {
		return r.do(ctx, slot, commands, nil)
	}
	var route transport.Route
	x := begin(p, commands)
	defer func() { // also if the client ends the goroutine
		x.end(route, replies, err)
		(*tell)(ctx, x)
	}()
	err = ErrExited // unless do returns
	return r.do(ctx, slot, commands, &route)
}

func begin(p purpose, commands []transport.Command) Exchange {
	x := Exchange{Command: commands[0][0].(string), Commands: len(commands), Holds: p.holds, Began: p.now}
	if p.script != nil {
		x.Script = p.script.name
	}
	for _, command := range commands {
		x.Sent += size(command)
	}
	if p.now.IsZero() {
		x.Began = time.Now()
	}
	return x
}

func (x *Exchange) end(route transport.Route, replies []any, err error) {
	x.Took, x.Err = time.Since(x.Began), err
	x.Node, x.Database, x.Moved, x.Asked = route.Node, route.Database, route.Moved, route.Asked
	x.Received = size(replies)
	for _, reply := range replies {
		switch reply := reply.(type) {
		case nil, int64, string, []byte, []any: // faster than asking each of these whether it is an error
		case error:
			if x.Status == "" {
				x.Status = status(reply)
			}
		}
	}
	if why, ok := err.(deferred); ok {
		x.Err = why.refused()
	}
	if x.Err != nil && errors.Is(x.Err, transport.ErrRefused) { // it was certainly not sent
		x.Sent = 0
		x.Status = cmp.Or(x.Status, whyNotConnected(x.Err))
	}
}

// size returns the number of bytes in arguments or replies, without those of Redis's protocol.
func size(values []any) (n int) {
	for _, value := range values {
		switch value := value.(type) {
		case string:
			n += len(value)
		case []byte:
			n += len(value)
		case int:
			n += digits(int64(value))
		case int64:
			n += digits(value)
		case []any:
			n += size(value)
		case error:
			n += len(value.Error())
		}
	}
	return n
}

// digits returns how many bytes a number takes as text.
func digits(n int64) (size int) {
	u := uint64(n)
	if n < 0 {
		size, u = 1, -u
	}
	u |= 1                              // 0 has a digit, too
	count := bits.Len64(u) * 1233 >> 12 // 1233/4096 is a little less than log10(2). So this is the number, or one less
	if u >= powers[count] {
		count++
	}
	return size + count
}

// powers are those of 10.
var powers = func() (p [20]uint64) {
	p[0] = 1
	for i := range len(p) - 1 {
		p[i+1] = 10 * p[i]
	}
	return p
}()

// greetings are the kinds of errors with which Redis replies to a client that connects.
var greetings = []string{"ERR", "NOAUTH", "WRONGPASS", "NOPERM", "DENIED", "NOPROTO", "LOADING", "BUSY"}

// whyNotConnected returns the first word of the error with which Redis has refused a connection, or "" if err is of
// another kind. Each client has its own type for Redis's errors, so only the text tells.
func whyNotConnected(err error) string {
	switch e := err.(type) {
	case interface{ Unwrap() []error }:
		for _, one := range e.Unwrap() {
			if why := whyNotConnected(one); why != "" {
				return why
			}
		}
	case interface{ Unwrap() error }:
		if inner := e.Unwrap(); inner != nil {
			return whyNotConnected(inner)
		}
	}
	word, _, _ := strings.Cut(err.Error(), " ")
	if i := slices.Index(greetings, word); i >= 0 {
		return greetings[i]
	}
	return ""
}

// status returns the first word of a refusal, which names its kind, such as OOM. It is "ERR" if Redis gave no kind.
func status(refusal error) string {
	word, _, _ := strings.Cut(refusal.Error(), " ")
	if word == "" || len(word) > 32 || strings.ToUpper(word) != word {
		return "ERR"
	}
	return strings.Clone(word) // whoever keeps it does not keep the text
}

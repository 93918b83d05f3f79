package scripting

import (
	"context"
	"math"
	"strings"
	"time"

	"github.com/a2139e8d/latchkey/locker/transport"
)

// An Exchange is one sending of commands, and their replies, as an observer sees it. Package middleware documents the
// fields.
type Exchange struct {
	Script         string
	Command        string
	Commands       int
	Node           string
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

// Observe makes the runner call tell after each exchange, in the goroutine of the round trip. If tell is nil, the runner calls
// nothing.
func (r *Runner) Observe(tell func(context.Context, Exchange)) {
	if tell == nil {
		r.observer.Store(nil)
		return
	}
	r.observer.Store(&tell)
}

// send sends commands, which are for a script or plain, and tells the observer, if there is one.
func (r *Runner) send(ctx context.Context, slot string, p purpose, commands []transport.Command) (replies []any, err error) {
	tell := r.observer.Load()
	if tell == nil {
		return r.do(ctx, slot, commands)
	}
	way := &transport.Routed{Context: ctx} // not used again: a goroutine of the client may still ask for the context later
	x := begin(p, commands)

	defer func() { // also if the client ends the goroutine
		x.end(way.Route, replies, err)
		(*tell)(ctx, x)
	}()
	return r.do(way, slot, commands)
}

func begin(p purpose, commands []transport.Command) Exchange {
	x := Exchange{Command: commands[0][0].(string), Commands: len(commands), Holds: p.holds, Began: p.now}
	if p.script != nil {
		x.Script = p.script.name
	}
	for _, command := range commands {
		for _, arg := range command {
			x.Sent += size(arg)
		}
	}
	if p.now.IsZero() {
		x.Began = time.Now()
	}
	return x
}

func (x *Exchange) end(way transport.Route, replies []any, err error) {
	x.Took, x.Err = time.Since(x.Began), err
	x.Node, x.Moved, x.Asked = way.Node, way.Moved, way.Asked
	for _, reply := range replies {
		x.Received += size(reply)
		if refusal, ok := reply.(error); ok && x.Status == "" {
			x.Status = status(refusal)
		}
	}
	if why, ok := err.(deferred); ok {
		x.Err = why.refused()
	}
}

// size returns the number of bytes in an argument or a reply, without those of Redis's protocol.
func size(value any) (n int) {
	switch value := value.(type) {
	case string:
		return len(value)
	case []byte:
		return len(value)
	case int:
		return digits(int64(value))
	case int64:
		return digits(value)
	case error:
		return len(value.Error())
	case []any:
		for _, part := range value {
			n += size(part)
		}
	}
	return n
}

// digits returns how many bytes a number takes as text. Its loop is faster than to write the text.
func digits(n int64) (size int) {
	if n < 0 {
		size, n = 1, -max(n, -math.MaxInt64)
	}
	for next := int64(10); n >= next; next *= 10 {
		if size++; next > math.MaxInt64/10 {
			break
		}
	}
	return size + 1
}

// status returns the first word of a refusal, which names its kind, such as OOM. It is "ERR" if Redis gave no kind.
func status(refusal error) string {
	word, _, _ := strings.Cut(refusal.Error(), " ")
	if word == "" || len(word) > 32 || strings.ToUpper(word) != word {
		return "ERR"
	}
	return word
}

package scripting

import (
	"context"
	"errors"
	"math"
	"strings"
	"sync"
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

// Observe makes the runner call tell after each exchange, in the goroutine of the round trip. When tell returns, the
// memory of the Exchange is used again. If tell is nil, the runner calls nothing.
func (r *Runner) Observe(tell func(context.Context, *Exchange)) {
	if tell == nil {
		r.observer.Store(nil)
		return
	}
	r.observer.Store(&tell)
}

// A sending is an Exchange that is under way. It is the context in which the client notes its way.
type sending struct {
	transport.Routed
	exchange Exchange
}

// sendings are used again after an exchange that has succeeded. After an error, a careless client might still ask for
// its context.
var sendings = sync.Pool{New: func() any { return new(sending) }}

// send sends commands, which are for a script or plain, and tells the observer, if there is one.
func (r *Runner) send(ctx context.Context, slot string, p purpose, commands []transport.Command) (replies []any, err error) {
	tell := r.observer.Load()
	if tell == nil {
		return r.do(ctx, slot, commands)
	}
	s := sendings.Get().(*sending)
	s.Context = ctx
	s.begins(p, commands)
	defer func() { // also if the client ends the goroutine
		s.ends(replies, err)
		(*tell)(ctx, &s.exchange)
		if err == nil && replies != nil {
			*s = sending{}
			sendings.Put(s)
		}
	}()
	return r.do(&s.Routed, slot, commands)
}

func (s *sending) begins(p purpose, commands []transport.Command) {
	x := &s.exchange
	x.Command, x.Commands = commands[0][0].(string), len(commands)
	x.Holds = p.holds
	if p.script != nil {
		x.Script = p.script.name
	}
	for _, command := range commands {
		for _, arg := range command {
			x.Sent += size(arg)
		}
	}
	x.Began = p.now
	if p.now.IsZero() {
		x.Began = time.Now()
	}
}

func (s *sending) ends(replies []any, err error) {
	x := &s.exchange
	x.Took = time.Since(x.Began)
	x.Node, x.Moved, x.Asked = s.Node, s.Moved, s.Asked
	for _, reply := range replies {
		x.Received += size(reply)
		if refusal, ok := reply.(error); ok && x.Status == "" {
			x.Status = status(refusal)
		}
	}
	x.Err = err
	if err == nil {
		return
	}
	if why, ok := errors.AsType[deferred](err); ok {
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

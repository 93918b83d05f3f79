// Package scripting runs Lua scripts on Redis, over any [transport.Client]: by their hash, and
// by their text where Redis does not know the hash. Each reply carries the number of its call
// (sequence.go), and what a broken connection left in doubt is repeated. So scripts must be
// safe to repeat with the same arguments.
//
// Errors wrap transport.ErrUnavailable, and transport.ErrRefused where nothing was done.
package scripting

import (
	"cmp"
	"context"
	"crypto/sha1"
	"embed"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/a2139e8d/latchkey/locker/transport"
)

// A Script is Lua for Redis, in the frame of package lua. It returns an array, a number from 0 to 3, or an
// error.
type Script struct {
	text string
	hash any // a string, as an argument
}

// NewScript returns the script with the given text.
func NewScript(text string) *Script {
	return &Script{text, fmt.Sprintf("%x", sha1.Sum([]byte(text)))} // Redis's choice, not one of security
}

// Golden returns a script of the directory golden. It panics if there is none with that name.
func Golden(files embed.FS, name string) *Script {
	text, err := files.ReadFile("golden/" + name + ".lua")
	if err != nil {
		panic(err)
	}
	return NewScript(string(text))
}

// A Runner may be used by any number of goroutines at once.
type Runner struct {
	client  transport.Client
	timeout time.Duration
	cluster transport.ClusterClient // nil: the client does not know clusters
	resets  atomic.Int64            // how often the connections were given up
}

// NewRunner returns a runner that takes at most timeout for each call, which should be the
// client's own.
func NewRunner(c transport.Client, timeout time.Duration) *Runner {
	cluster, _ := c.(transport.ClusterClient)
	return &Runner{client: c, timeout: timeout, cluster: cluster}
}

// Keys are strings, in the form in which clients want them: to make that again and again costs.
type Keys []any

// At returns a key.
func (k Keys) At(i int) string { return k[i].(string) }

// A RoundTrip is sent as one write: commands, and a script behind them. All keys are in one slot.
type RoundTrip struct {
	Before []transport.Command
	Script *Script
	Keys   Keys
	Args   []any
}

// Run runs a script.
func (r *Runner) Run(ctx context.Context, s *Script, keys Keys, args ...any) (Reply, error) {
	_, reply, err := r.RoundTrip(ctx, RoundTrip{Script: s, Keys: keys, Args: args})
	return reply, err
}

// maxRepeats of an exchange: once does where Redis has restarted; twice is for a bad network.
const maxRepeats = 2

// RoundTrip returns the replies to the commands, of which some may be errors, and to the script.
// They are repeated with the script. The error is the script's, or where that was refused, that of
// the first command that was refused, which may be why: with one that wraps ErrRefused, the others
// were executed if there are replies to them.
func (r *Runner) RoundTrip(ctx context.Context, x RoundTrip) ([]any, Reply, error) {
	own := scratches.Get().(*scratch)
	script := append(own.script, "EVALSHA", x.Script.hash, len(x.Keys))
	script = append(script, x.Keys...)
	slot := ""
	if len(x.Keys) > 0 {
		slot = x.Keys.At(0)
	}
	number := len(script) // where the number of the call is
	script = append(append(script, nil), x.Args...)
	commands := append(append(own.commands, x.Before...), script)
	own.script, own.commands = script, commands
	end := time.Now().Add(r.timeout)
	var patience patience
	defer patience.over()
	for repeat := 0; ; repeat++ {
		call := calls.Add(1)
		if repeat > 0 { // an earlier try may have been done, or may be done yet
			call = -call
		}
		script[number] = call
		before, reply, err := r.try(ctx, end, slot, x, commands, call)
		if err == nil {
			if repeat == 0 {
				own.release()
			}
			return before, reply, nil
		}
		if refusal, ok := err.(later); ok {
			if ctx, ok = patience.wait(ctx, end, refusal); ok {
				repeat-- // this try does not count: nothing was done
				continue
			}
			err = notInTime(ctx, refusal)
		}
		err = patience.explain(err, r.timeout)
		again := Broken(err) && repeat < maxRepeats
		if repeat > 0 {
			err = ambiguous{err}
		}
		if !again {
			return before, reply, err
		}
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, end)
		defer cancel()
		if repeat > 0 {
			select {
			case <-ctx.Done():
			case <-time.After(time.Duration(Chance() * float64(time.Millisecond<<(2*repeat)))):
			}
		}
	}
}

// try is one try of an exchange. The error is a later where nothing was done, and may be soon.
func (r *Runner) try(ctx context.Context, end time.Time, slot string, x RoundTrip, commands []transport.Command, call int64) ([]any, Reply, error) {
	last, resets := len(x.Before), r.resets.Load()
	script := commands[last]
	replies, err := r.do(ctx, slot, commands)
	if err != nil {
		return nil, Reply{}, err
	}
	before, value := replies[:last], replies[last]
	if refusal, ok := value.(error); ok && isNoScript(refusal) {
		value, err = r.eval(ctx, end, slot, x.Script.text, script)
	}
	if refusal, ok := value.(error); ok && err == nil {
		if r.putsOff(refusal) {
			return before, Reply{}, later{refusal}
		}
		value = cmp.Or(firstError(before), value)
	}
	var reply Reply
	if err == nil {
		reply, err = unframe(value, call)
	}
	if err == errStray {
		return nil, Reply{}, r.stray(resets)
	}
	return before, reply, err
}

// A scratch is where the commands of an exchange are put together. It is used again if there were
// replies at once. After an error it is not: a careless client might still be sending.
type scratch struct {
	script   transport.Command
	commands []transport.Command
}

var scratches = sync.Pool{New: func() any { return new(scratch) }}

// release keeps no argument alive, which may be a large record.
func (s *scratch) release() {
	clear(s.script)
	clear(s.commands)
	s.script, s.commands = s.script[:0], s.commands[:0]
	scratches.Put(s)
}

// firstError returns the first reply that is an error, or nil.
func firstError(replies []any) any {
	for _, reply := range replies {
		if refusal, ok := reply.(error); ok {
			return refusal
		}
	}
	return nil
}

// eval sends a script that Redis does not know once more, by its text, until the end of the call.
func (r *Runner) eval(ctx context.Context, end time.Time, slot, text string, script transport.Command) (any, error) {
	ctx, cancel := context.WithDeadline(ctx, end)
	defer cancel()
	script = slices.Clone(script)
	script[0], script[1] = "EVAL", text
	replies, err := r.do(ctx, slot, []transport.Command{script})
	if err != nil {
		return nil, err
	}
	if refusal, ok := replies[0].(error); ok && isNoScript(refusal) {
		return nil, errStray // EVAL is never answered that: it was another's
	}
	return replies[0], nil
}

// Ping asks Redis whether it is there. With keys in different slots it also finds out that it
// is a node of a cluster, where the client does not know that: such a node serves some of them
// only. Where the client does, it is enough that the node of one of them answers, since a cluster may
// do without a node.
func (r *Runner) Ping(ctx context.Context, keys ...string) error {
	if r.cluster != nil && len(keys) > 0 {
		return r.pingAny(ctx, keys)
	}
	if err := r.ping(ctx, ""); err != nil {
		return err
	}
	moved := make([]error, len(keys))
	var all sync.WaitGroup
	for i, key := range keys {
		all.Go(func() {
			replies, err := r.do(ctx, key, []transport.Command{{"GET", key}})
			if err == nil {
				if refusal, ok := replies[0].(error); ok && strings.HasPrefix(refusal.Error(), moving) {
					moved[i] = refused(refusal)
				}
			}
		})
	}
	all.Wait()
	return cmp.Or(moved...)
}

// pingAny returns with the first node that answers.
func (r *Runner) pingAny(ctx context.Context, keys []string) error {
	if !r.IsCluster() { // as far as the client knows yet
		if err := r.ping(ctx, keys[0]); err == nil || !r.IsCluster() {
			return err
		}
	}
	answers := make(chan error, len(keys))
	for _, key := range keys {
		go func() { // ends by the timeout of the client
			err := ErrExited
			defer func() { answers <- err }()
			err = r.ping(ctx, key)
		}()
	}
	var err error
	for range keys {
		if err = <-answers; err == nil {
			return nil
		}
	}
	return err
}

// ping asks once more where the connection broke: the server may have closed it since it was idle.
func (r *Runner) ping(ctx context.Context, key string) error {
	commands := []transport.Command{{"PING"}}
	replies, err := r.do(ctx, key, commands)
	if Broken(err) {
		replies, err = r.do(ctx, key, commands)
	}
	if err != nil {
		return err
	}
	if refusal, ok := replies[0].(error); ok {
		return refused(refusal)
	}
	return nil
}

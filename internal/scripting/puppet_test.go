package scripting

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gomodule/redigo/redis"
)

// A puppet is a Redis that the test plays itself, in a bubble. Its connections are
// in memory and keep nothing: a write lasts until the other side has read it.
type puppet struct {
	t       *testing.T
	pool    *redis.Pool
	client  *Runner
	dialled chan *wire
}

// newPuppet returns one whose client has so many lanes, and a minute for each
// exchange.
func newPuppet(t *testing.T, lanes int) *puppet {
	p := &puppet{t: t, dialled: make(chan *wire, 100)}
	p.pool = &redis.Pool{MaxActive: lanes, MaxIdle: 100, Dial: p.dial}
	p.client = OverPool(p.pool, time.Minute)
	t.Cleanup(p.close)
	return p
}

func (p *puppet) dial() (redis.Conn, error) {
	near, far := net.Pipe()
	w := &wire{t: p.t, Conn: far, r: bufio.NewReader(far)}
	p.dialled <- w
	return redis.NewConn(counter{near, &w.writes}, 0, 0), nil
}

// close ends all that a test has left, as it does when it fails.
func (p *puppet) close() {
	p.pool.Close()
	synctest.Wait()
	for len(p.dialled) > 0 {
		(<-p.dialled).Close()
	}
}

func (p *puppet) lanes() *lanes { return &p.client.lanes }

// accept returns Redis's end of the next connection.
func (p *puppet) accept() *wire {
	w := <-p.dialled
	p.t.Cleanup(func() { w.Close() })
	return w
}

// A counter counts the calls of Write that have begun.
type counter struct {
	net.Conn
	writes *atomic.Int64
}

func (c counter) Write(p []byte) (int, error) {
	c.writes.Add(1)
	return c.Conn.Write(p)
}

// An asked is a call of Eval. Its one argument is its name.
type asked struct {
	t        *testing.T
	name     string
	done     chan struct{} // closed when it has returned; then the rest is there
	reply    Reply
	err      error
	took     time.Duration
	panicked any
}

var echoScript = NewScript("return {ARGV[1]}")

// echoed reads the reply of echoScript.
func echoed(reply Reply, err error) (string, error) {
	text, ok := reply.TextAt(0)
	if err == nil && (!ok || reply.Len() != 1) {
		err = fmt.Errorf("%v is no echo", reply)
	}
	return text, err
}

// ask calls Eval, and returns when it waits for something.
func (p *puppet) ask(ctx context.Context, name string) *asked {
	a := &asked{t: p.t, name: name, done: make(chan struct{})}
	began := time.Now()
	go func() {
		defer close(a.done)
		defer func() { a.took, a.panicked = time.Since(began), recover() }()
		a.reply, a.err = p.client.Run(ctx, echoScript, []string{"key"}, name)
	}()
	synctest.Wait()
	return a
}

// crowd asks for each name, one after another.
func (p *puppet) crowd(names ...string) []*asked {
	var all []*asked
	for _, name := range names {
		all = append(all, p.ask(p.t.Context(), name))
	}
	return all
}

// wait returns when Eval has.
func (a *asked) wait() *asked {
	<-a.done
	return a
}

// wantReply waits for the reply, which must be its own.
func (a *asked) wantReply() {
	a.t.Helper()
	if reply, err := echoed(a.wait().reply, a.err); reply != a.name || err != nil {
		a.t.Errorf("%.9s got %.9q, %v", a.name, reply, err)
	}
}

// wantError waits for the error. maybe: Redis may have done it all the same.
func (a *asked) wantError(want error, maybe bool) {
	a.t.Helper()
	a.wait()
	if !errors.Is(a.err, want) || !errors.Is(a.err, ErrUnavailable) || Ambiguous(a.err) != maybe {
		a.t.Errorf("%.9s: %v, may have happened: %v", a.name, a.err, Ambiguous(a.err))
	}
}

// wantWaiting checks that nothing has come of it yet.
func (a *asked) wantWaiting() {
	a.t.Helper()
	synctest.Wait()
	select {
	case <-a.done:
		a.t.Errorf("%.9s does not wait: %v, %v", a.name, a.reply, a.err)
	default:
	}
}

// A wire is Redis's end of a connection.
type wire struct {
	net.Conn
	t      *testing.T
	r      *bufio.Reader
	writes atomic.Int64        // of the client
	calls  map[string][]string // the numbers of commands that were not answered, by name
	last   map[string]string   // and of the last one that was
}

// next reads a command.
func (w *wire) next() []string {
	w.t.Helper()
	var n int
	if _, err := fmt.Fscanf(w.r, "*%d\r\n", &n); err != nil {
		w.t.Fatalf("no command: %v", err)
	}
	command := make([]string, n)
	for i := range command {
		var size int
		if _, err := fmt.Fscanf(w.r, "$%d\r\n", &size); err != nil {
			w.t.Fatalf("no argument: %v", err)
		}
		text := make([]byte, size+len("\r\n"))
		if _, err := io.ReadFull(w.r, text); err != nil {
			w.t.Fatalf("no argument: %v", err)
		}
		command[i] = string(text[:size])
	}
	if w.calls == nil {
		w.calls, w.last = make(map[string][]string), make(map[string]string)
	}
	w.calls[nameOf(command)] = append(w.calls[nameOf(command)], command[n-1])
	return command
}

// nameOf returns the one argument of echoScript, behind which is the call's number.
func nameOf(command []string) string { return command[len(command)-2] }

// wantCommands reads the commands of those with the given names, in this order.
func (w *wire) wantCommands(names ...string) {
	w.t.Helper()
	for _, want := range names {
		command := w.next()
		if got := nameOf(command); got != want {
			w.t.Errorf("command of %.9s, want %.9s", got, want)
		}
	}
}

// serve answers those with the given names one by one, in whatever order they come.
func (w *wire) serve(names ...string) {
	w.t.Helper()
	var got []string
	for range names {
		command := w.next()
		got = append(got, nameOf(command))
		w.answer(got[len(got)-1])
	}
	if slices.Sort(got); !slices.Equal(got, names) {
		w.t.Errorf("commands of %q, want %q", got, names)
	}
}

// wantSilence checks that no more commands have come.
func (w *wire) wantSilence() {
	w.t.Helper()
	before := w.writes.Load()
	synctest.Wait()
	if n := w.r.Buffered(); n > 0 || w.writes.Load() > before {
		w.t.Errorf("%d bytes, and %d writes", n, w.writes.Load()-before)
	}
}

// answer replies to those with the given names, in one write. A name once more repeats
// the reply to its last command.
func (w *wire) answer(names ...string) {
	var text []byte
	for _, name := range names {
		if calls := w.calls[name]; len(calls) > 0 {
			w.last[name], w.calls[name] = calls[0], calls[1:]
		}
		text = fmt.Appendf(text, "*2\r\n$%d\r\n%s\r\n:%s\r\n", len(name), name, w.last[name])
	}
	w.say(string(text))
}

// say sends text, unless the client has closed the connection.
func (w *wire) say(text string) {
	_, _ = io.WriteString(w, text)
}

package transport

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gomodule/redigo/redis"
	"go.uber.org/goleak"
)

// TestMain checks that no round trip leaves a goroutine behind, however it ended.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m)
}

const s = time.Second

// withPuppet runs f in fake time, with a Redis that the test plays itself.
func withPuppet(t *testing.T, f func(t *testing.T, p *puppet)) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) { f(t, newPuppet(t)) })
}

// each runs f in fake time for each row of a table.
func each[T any](t *testing.T, table map[string]T, f func(t *testing.T, row T)) {
	t.Helper()
	for name, row := range table {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { f(t, row) })
		})
	}
}

// pause is for goroutines other than the test's own, which has redistest.Elapse.
func pause(d time.Duration) { time.Sleep(d) } // in a bubble

// A puppet is a Redis whose part the test plays, in a bubble. Its connections are in memory and have no buffers:
// a write lasts until the other side has read it.
type puppet struct {
	t       *testing.T
	pool    *redis.Pool
	client  *Redigo
	dialled chan *wire
}

// newPuppet returns a puppet whose client has a minute for each round trip.
func newPuppet(t *testing.T) *puppet {
	p := &puppet{t: t, dialled: make(chan *wire, 100)}
	p.pool = &redis.Pool{Dial: p.dial}
	p.client = NewRedigo(p.pool, time.Minute)
	t.Cleanup(p.close)
	return p
}

func (p *puppet) dial() (redis.Conn, error) {
	near, far := net.Pipe()
	w := &wire{t: p.t, Conn: far, r: bufio.NewReader(far)}
	p.dialled <- w
	return redis.NewConn(counter{near, &w.writes}, 0, 0), nil
}

// close ends everything that a test has left, as after a failure.
func (p *puppet) close() {
	p.client.Close()
	p.client.Reset()
	synctest.Wait()
	for len(p.dialled) > 0 {
		(<-p.dialled).Close()
	}
}

// accept returns Redis's end of the next connection.
func (p *puppet) accept() *wire {
	w := <-p.dialled
	p.t.Cleanup(func() { w.Close() })
	return w
}

// acceptProbe accepts the client's second connection, and the PING on it. The client makes it after waiting for
// an eighth of a minute.
func (p *puppet) acceptProbe() *wire {
	p.t.Helper()
	w := p.accept()
	w.wantCommands("PING")
	return w
}

// wantNoConnection checks that no further connection is made.
func (p *puppet) wantNoConnection() {
	p.t.Helper()
	if synctest.Wait(); len(p.dialled) > 0 {
		p.t.Errorf("%d connections are made", len(p.dialled))
	}
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

// An asked is a call of Do. It sends ECHO with its name, once for each reply it wants.
type asked struct {
	t       *testing.T
	name    string
	done    chan struct{} // closed when it has returned; then the fields below are set
	replies []any
	err     error
	took    time.Duration
}

// ask calls Do, and returns when the call waits for something.
func (p *puppet) ask(ctx context.Context, name string) *asked {
	return p.do(ctx, name, Command{"ECHO", name})
}

// hurry is ask with a second instead of a minute.
func (p *puppet) hurry(name string) *asked {
	ctx, stop := context.WithTimeout(p.t.Context(), s)
	p.t.Cleanup(stop)
	return p.ask(ctx, name)
}

func (p *puppet) do(ctx context.Context, name string, commands ...Command) *asked {
	a := &asked{t: p.t, name: name, done: make(chan struct{})}
	began := time.Now()
	go func() {
		defer close(a.done)
		a.replies, a.err = p.client.Do(ctx, "", commands...)
		a.took = time.Since(began)
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

// begin asks for first, and accepts its connection and its command.
func (p *puppet) begin(name string) (*wire, *asked) {
	p.t.Helper()
	first := p.ask(p.t.Context(), name)
	w := p.accept()
	w.wantCommands(name)
	return w, first
}

// wantServed checks that a round trip makes a new connection, and gets its reply there.
func (p *puppet) wantServed(name string) *wire {
	p.t.Helper()
	w, a := p.begin(name)
	w.answer(name)
	a.wantReply()
	return w
}

// wantServedOn is wantServed on an existing connection.
func (p *puppet) wantServedOn(w *wire, name string) {
	p.t.Helper()
	w.serve(p.ask(p.t.Context(), name))
}

// wantReplies waits for all of these calls to get their replies.
func wantReplies(all ...*asked) {
	for _, a := range all {
		a.t.Helper()
		a.wantReply()
	}
}

// wantReply waits for the reply, which must be the call's own.
func (a *asked) wantReply() {
	a.t.Helper()
	<-a.done
	if a.err != nil || len(a.replies) != 1 || fmt.Sprintf("%s", a.replies[0]) != a.name {
		a.t.Errorf("%.9s got %.9q, %v", a.name, a.replies, a.err)
	}
}

// wantError waits for the error. maybe: the command may have been done nevertheless.
func (a *asked) wantError(want error, maybe bool) {
	a.t.Helper()
	<-a.done
	if !errors.Is(a.err, want) || !errors.Is(a.err, ErrUnavailable) || errors.Is(a.err, ErrRefused) == maybe {
		a.t.Errorf("%.9s: %v, may have happened: %v", a.name, a.err, !errors.Is(a.err, ErrRefused))
	}
}

// wantBroken waits for the error of a round trip whose connection broke. It may be repeated: it is not a timeout,
// even if another call's timeout is the cause.
func (a *asked) wantBroken() *BrokenError {
	a.t.Helper()
	a.wantError(ErrUnavailable, true)
	if timeout, ok := errors.AsType[interface {
		error
		Timeout() bool
	}](a.err); ok && timeout.Timeout() {
		a.t.Errorf("%.9s: %v is a timeout", a.name, a.err)
	}
	broken, ok := errors.AsType[*BrokenError](a.err)
	if !ok || broken.Cause == nil {
		a.t.Fatalf("%.9s: %v is no BrokenError", a.name, a.err)
	}
	return broken
}

// wantWaiting checks that the call has not returned yet.
func (a *asked) wantWaiting() {
	a.t.Helper()
	synctest.Wait()
	select {
	case <-a.done:
		a.t.Errorf("%.9s does not wait: %v, %v", a.name, a.replies, a.err)
	default:
	}
}

func (a *asked) wantTook(d time.Duration) {
	a.t.Helper()
	if a.took != d {
		a.t.Errorf("%.9s took %v, want %v", a.name, a.took, d)
	}
}

// A wire is Redis's end of a connection.
type wire struct {
	net.Conn
	t      *testing.T
	r      *bufio.Reader
	writes atomic.Int64 // of the client
}

// next reads a command, and returns its last argument.
func (w *wire) next() string {
	w.t.Helper()
	last, _, err := next(w.r)
	if err != nil {
		w.t.Fatalf("no command: %v", err)
	}
	return last
}

// wantCommands reads the commands of the calls with these names, in this order.
func (w *wire) wantCommands(names ...string) {
	w.t.Helper()
	for _, want := range names {
		if got := w.next(); got != want {
			w.t.Errorf("command of %.9s, want %.9s", got, want)
		}
	}
}

// wantSilence checks that no more commands come.
func (w *wire) wantSilence() {
	w.t.Helper()
	before := w.writes.Load()
	synctest.Wait()
	if n := w.r.Buffered(); n > 0 || w.writes.Load() > before {
		w.t.Errorf("%d bytes, and %d writes", n, w.writes.Load()-before)
	}
}

// wantEnd checks that the client has closed the connection.
func (w *wire) wantEnd() {
	w.t.Helper()
	if _, err := w.r.ReadByte(); err != io.EOF {
		w.t.Errorf("%v, want the end of the connection", err)
	}
}

// wantEndAfter is wantEnd, and checks how long that takes.
func (w *wire) wantEndAfter(want time.Duration) {
	w.t.Helper()
	begun := time.Now()
	w.wantEnd()
	if after := time.Since(begun); after != want {
		w.t.Errorf("the connection ends after %v, want %v", after, want)
	}
}

// answer replies to the calls with these names, in one write.
func (w *wire) answer(names ...string) {
	var text []byte
	if len(names) == 0 {
		return
	}
	for _, name := range names {
		text = fmt.Appendf(text, "$%d\r\n%s\r\n", len(name), name)
	}
	w.say(string(text))
}

// serve reads a command, and replies to it.
func (w *wire) serve(a *asked) {
	w.t.Helper()
	w.wantCommands(a.name)
	w.answer(a.name)
	a.wantReply()
}

// say sends text, unless the client has closed the connection.
func (w *wire) say(text string) {
	_, _ = io.WriteString(w, text)
}

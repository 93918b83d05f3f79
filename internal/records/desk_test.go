package records

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/internal/scripting"
)

// theQueue is the key of the queue of processes.
const theQueue = theLock + ".queue"

// A guest is a request that waits for the session, and then holds it.
type guest struct {
	hold *Hold
	err  error
	came chan struct{} // closed when it holds the session, or never will
}

// guests puts requests in line behind the session's holder, in a bubble.
func guests(t *testing.T, st *Engine, n int, terms Terms) []*guest {
	t.Helper()
	terms.LockWait = patient.Lease
	all := make([]*guest, n)
	for i := range all {
		g := &guest{came: make(chan struct{})}
		all[i] = g
		go func() {
			defer close(g.came)
			g.hold, _, g.err = st.Take(t.Context(), theID, terms)
		}()
		synctest.Wait()
	}
	return all
}

// holds waits until the guest has the session, with this data.
func (g *guest) holds(t *testing.T, data string) *Hold {
	t.Helper()
	<-g.came
	if g.err != nil {
		t.Fatalf("a guest: %v", g.err)
	}
	if got := string(g.hold.Record.Data); got != data {
		t.Fatalf("a guest found %q, want %q", got, data)
	}
	return g.hold
}

// An ending is a hold that ends and waits for its commit.
type ending struct {
	err  error
	done chan struct{}
}

func begin(end func() error) *ending {
	e := &ending{done: make(chan struct{})}
	go func() {
		defer close(e.done)
		e.err = end()
	}()
	return e
}

// saving begins to save a hold.
func saving(t *testing.T, h *Hold, data string) *ending {
	return begin(func() error { return h.Save(t.Context(), []byte(data)) })
}

// wait waits for the ending, and returns its error.
func (e *ending) wait() error {
	<-e.done
	return e.err
}

// wantPending checks that the ending still waits.
func (e *ending) wantPending(t *testing.T) {
	t.Helper()
	select {
	case <-e.done:
		t.Errorf("the end of a hold returned before its commit: %v", e.err)
	default:
	}
}

// A desk is one process, with a proxy to Redis that shows what the process does there.
type desk struct {
	*redistest.Server
	proxy *redistest.Proxy
	st    *Engine
}

// eachDesk runs f in fake time, with a new session that has "0" in it.
func eachDesk(t *testing.T, o Options, f func(t *testing.T, d *desk)) {
	t.Helper()
	inFakeTime(t, func(t *testing.T, s *redistest.Server) {
		learn(t, s)
		st, p := tapped(t, s, o)
		st.maxUnheard = time.Hour
		create(t, process(t, s), "0")
		f(t, &desk{s, p, st})
	})
}

// atDesk is a subtest at a desk.
func atDesk(o Options, f func(t *testing.T, d *desk)) func(*testing.T) {
	return func(t *testing.T) { eachDesk(t, o, f) }
}

// line puts requests in line behind a request that saves "1". Its commit is held back until letGo.
func (d *desk) line(t *testing.T, n int) (one *ending, waiting []*guest, letGo func()) {
	t.Helper()
	first := take(t, d.st)
	waiting = guests(t, d.st, n, Terms{})
	letGo = d.holdBack(t)
	return saving(t, first, "1"), waiting, letGo
}

// holdBack keeps the next commit from Redis until letGo.
func (d *desk) holdBack(t *testing.T) (letGo func()) {
	t.Helper()
	before := d.count(commitScript)
	release := once(t, d.Server, d.proxy, commitScript, redistest.HangCommand)
	return func() {
		t.Helper()
		d.sent(t, commitScript, before+1)
		release()
	}
}

// count returns how often the process ran a script.
func (d *desk) count(script *scripting.Script) (n int) {
	for _, cmd := range d.proxy.Commands() {
		if runs(cmd, script) {
			n++
		}
	}
	return n
}

// takes returns how often the process has tried to take the session. others counts its commands
// that neither take nor commit.
func (d *desk) takes() (takes, others int) {
	for _, cmd := range d.proxy.Commands() {
		switch {
		case takesLock(cmd), runs(cmd, takeScript):
			takes++
		case cmd.Name != "PTTL" && !readsBoth(cmd) && !runs(cmd, commitScript):
			others++
		}
	}
	return takes, others
}

// sent waits until the process has run a script for the nth time.
func (d *desk) sent(t *testing.T, script *scripting.Script, n int) {
	t.Helper()
	redistest.Eventually(t, "the script is sent", func() bool { return d.count(script) >= n })
}

// wantQuiet checks that data is stored, and that no lock or queue is left.
func (d *desk) wantQuiet(t *testing.T, data string) {
	t.Helper()
	redistest.Eventually(t, "the session is free", func() bool { return !d.Exists(t, theLock) })
	wantData(t, d.Server, data)
	if d.Exists(t, theQueue) {
		t.Error("a queue is left")
	}
}

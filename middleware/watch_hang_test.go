package middleware

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/records"
	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/locker/transport"
	"github.com/a2139e8d/latchkey/session"
	"github.com/a2139e8d/latchkey/store"
)

// A hanging client is one of a cluster of which some nodes hang: round trips for certain keys get no reply.
type hanging struct {
	transport.Client
	hangs   func(key string) bool
	timeout time.Duration
	waiting atomic.Int32 // round trips without a reply
	most    atomic.Int32
}

func (c *hanging) Do(ctx context.Context, key string, commands ...transport.Command) ([]any, error) {
	if !c.hangs(key) {
		return c.Client.Do(ctx, key, commands...)
	}
	for n := c.waiting.Add(1); n > c.most.Load(); {
		c.most.Store(n)
	}
	defer c.waiting.Add(-1)
	<-time.After(c.timeout)
	return nil, late{}
}

// late is the error of a round trip without a reply.
type late struct{}

func (late) Error() string { return "no reply" }
func (late) Timeout() bool { return true }
func (late) Unwrap() error { return transport.ErrUnavailable }

// through returns the sessions of a process whose client hangs for some keys.
func through(t *testing.T, r *redistest.Server, hangs func(key string) bool) (*Sessions, *hanging) {
	t.Helper()
	c := &hanging{Client: transport.NewRedigo(r.Pool(t, 8), 2*time.Second), hangs: hangs, timeout: 2 * time.Second}
	st := store.NewOn(c, store.Options{})
	t.Cleanup(func() { _ = st.Close() })
	return sessionsOn(t, st), c
}

// P16: If a node of a cluster hangs, the contexts of requests with sessions on other nodes still end within two
// seconds. No context of a request with a session on the hanging node ends.
func TestANodeThatHangsHoldsUpNobodyElse(t *testing.T) {
	t.Parallel()
	redistest.InFakeTime(t, func(t *testing.T, r *redistest.Server) {
		var hangs atomic.Bool
		here, client := through(t, r, func(key string) bool { return hangs.Load() && strings.Contains(key, "far") })
		there := sessionsOn(t, store.New(r.Pool(t, 2), store.Options{}))
		const near, far = 150, 600
		var ids []string
		requests := make(map[string]*request)
		defer func() {
			hangs.Store(false)
			for _, rq := range requests {
				rq.leaveWatch()
			}
		}()
		for i := range near + far {
			id := fmt.Sprintf("near%017dA", i)
			if i >= near {
				id = fmt.Sprintf("far%018dA", i)
			}
			record := records.Record{Data: []byte(`{}`), Created: time.Now()}
			if err := there.store.CreateRecord(t.Context(), id, record, there.terms); err != nil {
				t.Fatal(err)
			}
			ids, requests[id] = append(ids, id), enters(here, id)
		}
		redistest.Elapse(1500 * time.Millisecond)
		hangs.Store(true)
		for _, id := range ids[:40] {
			redistest.Elapse(rand.N(250 * time.Millisecond)) // at any moment between two rounds
			if err := there.End(t.Context(), id); err != nil {
				t.Fatal(err)
			}
			at := time.Now()
			ended := requests[id].context.Done()
			select {
			case <-ended:
			case <-time.After(10 * time.Second):
			}
			if took := time.Since(at); took > 2*time.Second || context.Cause(&requests[id].context) != session.ErrEnded {
				t.Errorf("the context of %s ended %v later, because of %v", id, took, context.Cause(&requests[id].context))
			}
		}
		if client.most.Load() < far*3/4 { // the test would show nothing
			t.Errorf("no more than %d questions had no answer", client.most.Load())
		}
		if err := there.End(t.Context(), ids[near]); err != nil { // its node hangs
			t.Fatal(err)
		}
		redistest.Elapse(5 * time.Second)
		for i, id := range ids {
			if err := requests[id].context.Err(); i >= 40 && err != nil {
				t.Errorf("the context of %s has ended: %v", id, context.Cause(&requests[id].context))
			}
		}
		hangs.Store(false)
		redistest.Elapse(2*time.Second + client.timeout)
		if cause := context.Cause(&requests[ids[near]].context); cause != session.ErrEnded {
			t.Errorf("the node replies again, and the request of %s goes on: %v", ids[near], cause)
		}
	})
}

// If all of Redis hangs, the watch waits with a limited number of goroutines, and goes on when Redis replies.
func TestARedisThatHangsDoesNotPileUpGoroutines(t *testing.T) {
	t.Parallel()
	redistest.InFakeTime(t, func(t *testing.T, r *redistest.Server) {
		var hangs atomic.Bool
		hangs.Store(true)
		here, client := through(t, r, func(string) bool { return hangs.Load() })
		var all []*request
		defer func() {
			hangs.Store(false)
			for _, rq := range all {
				rq.leaveWatch()
			}
		}()
		for i := range watchMost + watchMost/2 {
			all = append(all, enters(here, fmt.Sprintf("%022d", i)))
		}
		for range 20 {
			redistest.Elapse(time.Second)
			if n := here.watch.askers.Load(); n > watchMost {
				t.Errorf("%d goroutines ask", n)
			}
		}
		if most := client.most.Load(); most != watchMost {
			t.Errorf("%d questions had no answer at once, want %d", most, watchMost)
		}
		for _, rq := range all {
			if rq.context.Err() != nil {
				t.Fatal("a context has ended, and Redis has said nothing")
			}
		}
		hangs.Store(false)
		redistest.Elapse(2*time.Second + client.timeout)
		for _, rq := range all { // none of the sessions was ever there
			if context.Cause(&rq.context) != session.ErrEnded {
				t.Fatal("Redis replies again, and a context has not ended")
			}
		}
		redistest.Elapse(time.Second)
		if n := here.watch.askers.Load(); n != 0 {
			t.Errorf("%d goroutines are left", n)
		}
	})
}

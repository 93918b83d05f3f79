package lease

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// A crowd is callers of one process at one key.
type crowd struct {
	t     *testing.T
	f     *fakeQueue
	group *Group
	got   []chan result
}

// newCrowd has the lock, and n callers that wait for it.
func newCrowd(t *testing.T, n int) (*crowd, *Lease) {
	t.Helper()
	c := &crowd{t: t, f: newFakeSite(t).process()}
	c.group = c.f.group()
	l, err := c.group.Lock(t.Context(), "k", c.f, Options{})
	if err != nil {
		t.Fatal(err)
	}
	for range n {
		c.join(t.Context())
	}
	return c, l
}

// join adds one more.
func (c *crowd) join(ctx context.Context) {
	c.t.Helper()
	c.joinAs(ctx, Options{Wait: time.Minute})
}

func (c *crowd) joinAs(ctx context.Context, o Options) {
	c.t.Helper()
	got := make(chan result, 1)
	c.got = append(c.got, got)
	go func() {
		l, err := c.group.Lock(ctx, "k", c.f, o)
		got <- result{lease: l, err: err}
	}()
	synctest.Wait()
}

// holds returns the lease of the ith that waited, who must have it by now.
func (c *crowd) holds(i int) *Lease {
	c.t.Helper()
	synctest.Wait()
	select {
	case r := <-c.got[i]:
		if r.err != nil {
			c.t.Fatalf("number %d: %v", i, r.err)
		}
		if r.lease.Validity() <= 0 || isLost(r.lease) {
			c.t.Errorf("number %d has a lease that is over", i)
		}
		return r.lease
	default:
		c.t.Fatalf("number %d does not have it", i)
		return nil
	}
}

// wantRest says that all is as if nobody had been there.
func (c *crowd) wantRest() {
	c.t.Helper()
	wantRest(c.t, c.f.site, c.f)
	wantIdle(c.t, c.group)
}

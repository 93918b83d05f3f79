package middleware

import (
	"context"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/a2139e8d/latchkey/internal/records"
	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/store"
)

// Without observers a request is not observed, and that costs no allocation.
func TestWithoutObserversNothingIsAllocated(t *testing.T) {
	s, err := New(store.New(redistest.Memory(t).Pool(t, 1), store.Options{}), Options{Keys: [][]byte{[]byte("0123456789abcdef0123456789abcdeF")}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, rq := context.Background(), &request{base: httptest.NewRequest(http.MethodGet, "/", nil)}
	n := testing.AllocsPerRun(100, func() {
		rq.seen = s.observe(ctx, time.Time{})
		_ = rq.storeContext()
		region := rq.seen.region("wait")
		region.end()
		rq.seen.waited("GET /", time.Second, records.Wait{}, nil, time.Time{})
		rq.seen.opened(locked)
		rq.seen.cameWith(1, 1)
		rq.seen.foundDead(1)
		rq.seen.committed(save, nil, true)
		rq.seen.abandoned()
		rq.seen.failed(nil)
		rq.seen.released()
		rq.seen.tell()
		rq.seen.finish()
		rq.endedOpen()
	})
	if n > 0 || rq.seen != nil {
		t.Errorf("%v allocations", n)
	}
}

// Kept events are not told while the request holds its session. One goroutine may commit, and another may open the
// session again before the first one tells.
func TestNothingIsToldWhileTheSessionIsHeld(t *testing.T) {
	told := 0
	s, err := New(store.New(redistest.Memory(t).Pool(t, 1), store.Options{}), Options{
		Keys:      [][]byte{[]byte("0123456789abcdef0123456789abcdeF")},
		Observers: []Observer{counting{&told}},
	})
	if err != nil {
		t.Fatal(err)
	}
	o := s.observe(t.Context(), time.Now())
	o.Exchanged(records.Exchange{Command: "GET"})
	o.waited("GET /", time.Second, records.Wait{}, nil, time.Now())
	o.tell()
	if told != 0 {
		t.Errorf("%d events were told", told)
	}
	o.released()
	o.tell()
	if told != 1 {
		t.Errorf("%d events were told after the session was released, want 1", told)
	}
}

// What a commit has told is let go: the request may be a stream, which goes on for hours.
func TestWhatIsToldIsNotKept(t *testing.T) {
	o := &observation{Context: t.Context(), sessions: &Sessions{}, arrived: time.Now()}
	for range 100 {
		o.Exchanged(records.Exchange{Command: "GET"})
	}
	few := o.notes.few[:]
	o.tell()
	if kept := o.notes.kept; cap(kept) != len(few) {
		t.Errorf("there is room for %d events", cap(kept))
	}
	o.Exchanged(records.Exchange{Command: "GET"})
	o.tell()
	if !slices.Equal(few, make([]Event, len(few))) {
		t.Errorf("%v are kept", few)
	}
}

// The session counts as acquired when its lock is, and as saved when the reply to its commit comes. What the request
// does after that does not count. If another exchange has come in between, or another request has stored the changes,
// the time of the note counts.
func TestTimesOfAnObservation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		o := &observation{Context: t.Context(), notes: &notes{keeping: true, event: RequestEvent{Arrived: start}}}
		e := &o.notes.event
		exchange := func(holds int) {
			began := time.Now()
			time.Sleep(time.Second)
			o.Exchanged(records.Exchange{Holds: holds, Began: began, Took: time.Second})
		}
		want := func(what string, got time.Time, seconds time.Duration) {
			t.Helper()
			if got := got.Sub(start); got != seconds*time.Second {
				t.Errorf("%s after %v, want %d s", what, got, seconds)
			}
		}
		acquire := func() { o.waited("GET /", 0, records.Wait{}, nil, time.Now()) }

		exchange(0)
		acquire()
		time.Sleep(time.Second)
		o.opened(locked)
		want("acquired", e.Acquired, 1)
		exchange(1)
		time.Sleep(time.Second)
		o.committed(save, nil, true)
		want("committed", e.Committed, 3)

		acquire()
		time.Sleep(time.Second) // another request's commit stores its changes
		o.committed(save, nil, true)
		want("committed by another", e.Committed, 5)

		exchange(1) // of a hold that is given up
		acquire()
		time.Sleep(time.Second)
		o.committed(save, nil, true)
		want("committed by another after a commit", e.Committed, 7)

		e.Acquired = time.Time{}
		acquire()
		exchange(0) // claims the session
		time.Sleep(time.Second)
		o.opened(locked)
		want("claimed", e.Acquired, 9)
	})
}

// The second run of a handler goes on with the lock of the first, so the session counts as held in between.
func TestHeldBetweenTwoRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := &observation{Context: t.Context(), notes: &notes{event: RequestEvent{Arrived: time.Now()}}}
		o.waited("GET /", 0, records.Wait{}, nil, time.Now())
		for range 2 {
			time.Sleep(time.Second)
			o.released()
			time.Sleep(time.Second)
			o.holdsOn()
		}
		o.released()
		if e := o.notes.event; e.Held != 4*time.Second || len(e.Holds) != 1 || e.Holds[0].Released.Sub(e.Holds[0].Acquired) != e.Held {
			t.Errorf("the session was held for %v, in %+v", e.Held, e.Holds)
		}
	})
}

type counting struct{ told *int }

func (c counting) Observe(context.Context, Event) { *c.told++ }

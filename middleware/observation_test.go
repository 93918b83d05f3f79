package middleware

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
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
		rq.seen.waited("GET /", time.Second, true, time.Time{})
		rq.seen.opened("id", locked)
		rq.seen.cameWith(1, 1)
		rq.seen.dead()
		rq.seen.committed(save, nil)
		rq.seen.abandoned()
		rq.seen.failed(nil, "")
		rq.seen.released()
		rq.seen.tell()
		rq.seen.finish()
		rq.endedOpen()
	})
	if n > 0 || rq.seen != nil {
		t.Errorf("%v allocations", n)
	}
}

// What was kept is not told while the request holds its session: a goroutine may have opened it again, after another
// has committed and before that tells.
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
	o.waited("GET /", time.Second, true, time.Now())
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

type counting struct{ told *int }

func (c counting) Observe(context.Context, Event) { *c.told++ }

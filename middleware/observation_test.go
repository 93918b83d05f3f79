package middleware

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

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

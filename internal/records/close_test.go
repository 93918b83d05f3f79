package records

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/redistest"
)

// Close ends all waits of requests at once, even if the pool is the caller's. A request that holds a session can
// no longer save it. Later requests are refused. The error says that the store was closed.
func TestCloseEndsWhatTheStoreDoes(t *testing.T) {
	inFakeTime(t, func(t *testing.T, s *redistest.Server) {
		st, other := process(t, s), process(t, s)
		create(t, st, "0")
		must(t, st.Create(t.Context(), newID, []byte("0"), Terms{}))
		own, h := takeID(t, st, newID), take(t, other)
		waiting := guests(t, st, 2, Terms{}) // one of them competes in Redis, the other waits behind it
		begun := time.Now()
		for range 2 {
			wantError(t, "Close", st.Close(), nil)
		}
		wantError(t, "the context of work in the background", st.Context().Err(), context.Canceled)
		for _, g := range waiting {
			<-g.came
			wantClosed(t, "one that waited", g.err)
		}
		wantError(t, "Save", own.Save(t.Context(), []byte("1")), ErrUnavailable)
		for name, use := range map[string]func(ctx context.Context) error{
			"Take": func(ctx context.Context) error { _, _, err := st.Take(ctx, theID, Terms{}); return err },
			"Ping": st.Ping,
			"Load": func(ctx context.Context) error { _, err := st.Load(ctx, theID, Terms{}); return err },
			"SaveLoaded": func(ctx context.Context) error {
				_, err := st.SaveLoaded(ctx, newID, own.Record, text("1"), Terms{})
				return err
			},
			"Create": func(ctx context.Context) error { return st.Create(ctx, "third", []byte("0"), Terms{}) },
		} {
			wantClosed(t, name, use(t.Context()))
		}
		if took := time.Since(begun); took > 0 {
			t.Errorf("the calls took %v", took)
		}
		save(t, h, "1") // held by another store
	})
}

func wantClosed(t *testing.T, what string, err error) {
	t.Helper()
	if !errors.Is(err, ErrUnavailable) || !strings.Contains(err.Error(), "the store was closed") {
		t.Errorf("%s got %v", what, err)
	}
}

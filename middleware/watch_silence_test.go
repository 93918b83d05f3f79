package middleware_test

import (
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/middleware"
	"github.com/a2139e8d/latchkey/store"
)

// If the watch gets no answer for long, that is logged once a minute.
func TestALongSilenceIsLogged(t *testing.T) {
	inBubble(t, func(t *testing.T, r *redistest.Server) {
		l := newLive(t, r, middleware.Options{}, store.Options{})
		l.stay("holding it")
		logged := func() int { return len(l.here.log.Lines("kind=unwatched", "for=")) }
		for _, test := range []struct {
			pause time.Duration
			lines int
		}{{8 * time.Second, 0}, {100 * time.Second, 2}, {8 * time.Second, 2}, {20 * time.Second, 3}} {
			l.Pause(t)
			redistest.Elapse(test.pause)
			if l.Resume(t); logged() != test.lines {
				t.Errorf("%d lines after a pause of %v, want %d", logged(), test.pause, test.lines)
			}
			redistest.Elapse(time.Minute)
		}
		l.freeAll()
	})
}

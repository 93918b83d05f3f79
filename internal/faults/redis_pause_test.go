package faults

import (
	"context"
	"testing"
	"time"
)

// Redis does not answer for a while, as when its machine swaps.
func TestRedisPaused(t *testing.T) {
	s := stage(t, "Redis paused for 3 s", "P8: nothing lost, back by itself", setting{logins: true, apart: true})
	s.run(func(ctx context.Context) {
		s.redis.Pause(t)
		pause(ctx, 3*time.Second)
		s.redis.Resume(t)
	})
	happened(t, "a request was not answered", s.summary().Silent, 1)
}

// A pause shorter than the lease and the time-out of an exchange makes requests wait, and
// none fail.
func TestRedisPausedShortly(t *testing.T) {
	const length = 2 * lease / 5
	s := stage(t, "Redis paused for 0.4 s, three times", "not noticed, but for the wait", setting{logins: true})
	s.run(func(ctx context.Context) {
		for range 3 {
			s.redis.Pause(t)
			pause(ctx, length)
			s.redis.Resume(t)
			pause(ctx, lease/5)
		}
	})
	s.allAnswered()
	if longest := s.summary().Longest; longest < length {
		t.Errorf("no request took longer than %v", longest)
	}
}

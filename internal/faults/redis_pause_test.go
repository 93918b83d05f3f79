package faults

import (
	"context"
	"fmt"
	"net/http"
	"testing"
	"time"
)

// Redis does not answer for a while, as when its machine swaps.
func TestRedisPaused(t *testing.T) {
	t.Parallel()
	s := stage(t, "Redis paused for 3 s", "P8: nothing lost, back by itself", setting{logins: true, apart: true})
	s.run(func(ctx context.Context) {
		s.redis.Pause(t)
		pause(ctx, 3*time.Second)
		s.redis.Resume(t)
	})
	if s.summary().Silent == 0 {
		t.Error("all requests were answered, although Redis was silent for longer than the time-out")
	}
}

// A pause shorter than the lease and the time-out of an exchange makes requests wait, and
// none fail.
func TestRedisPausedShortly(t *testing.T) {
	t.Parallel()
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

// A holder saves while Redis is paused. Its command waits in Redis's socket, and is
// executed when Redis continues; but by then the lease is over, and the client has the
// answer that nothing was saved. So nothing must be.
func TestRedisPausedPastLease(t *testing.T) {
	t.Parallel()
	s := stage(t, "Redis paused past lease and time-out, while a session is held", "P3: the late save is refused",
		setting{apart: true, flags: []string{"-work", "800ms"}})
	s.run(func(ctx context.Context) {
		h := s.hold(s.demos[0], "late")
		s.redis.Pause(t)
		held := <-h.replies
		pause(ctx, lease) // after the holder's last command
		s.redis.Resume(t)
		h.must("the save during the pause", held, http.StatusServiceUnavailable, "")
		h.mustHave(s.demos[1])
		h.must("the next request", h.set(s.demos[1], "next"), http.StatusOK, "ok")
		h.mustHave(s.demos[0], "next")
		s.seen = fmt.Sprintf("the holder was refused after %v", held.took.Round(time.Millisecond))
	})
}

// CLIENT PAUSE WRITE holds back all scripts, and the expiry of locks.
func TestClientPause(t *testing.T) {
	t.Parallel()
	const length = 3500 * time.Millisecond
	s := stage(t, fmt.Sprintf("CLIENT PAUSE %v WRITE", length), "P8: nothing lost, back by itself", setting{logins: true, apart: true})
	s.run(func(ctx context.Context) {
		s.redis.Do(t, "CLIENT", "PAUSE", length.Milliseconds(), "WRITE")
		g := s.guestWith("")
		began := time.Now()
		g.must("a write during the pause", g.post(s.demos[0], "/reset"), http.StatusServiceUnavailable, "")
		pause(ctx, length-time.Since(began))
	})
}

package middleware

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// A silence lasts as long as none of the watch's questions is answered. Nobody else would log that: requests that have
// been open for long send no other commands.
type silence struct {
	mu     sync.Mutex
	began  time.Time // when the first question was asked that had no answer; zero: there is none
	logged time.Time
}

const (
	longSilence  = 10 * time.Second
	silenceLines = time.Minute // from one line to the next
)

// note takes the outcome of a question that was asked at a time. If the silence is so long that it must be logged, note
// returns how long it is, and otherwise 0.
func (s *silence) note(answered bool, asked time.Time) (long time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	switch {
	case answered:
		s.began = time.Time{}
	case s.began.IsZero():
		s.began = asked
	case now.Sub(s.began) > longSilence && now.Sub(s.logged) >= silenceLines:
		s.logged = now
		return now.Sub(s.began)
	}
	return 0
}

// logSilence logs that no session's end has been noticed for that long.
func (s *Sessions) logSilence(long time.Duration, err error) {
	s.logLine(context.Background(), slog.LevelWarn, "unwatched", "the ends of sessions are not noticed, and requests that stay open go on",
		func() []slog.Attr {
			return []slog.Attr{slog.String("kind", "unwatched"), slog.Duration("for", long), slog.Any("error", err)}
		})
}

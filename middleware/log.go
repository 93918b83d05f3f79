package middleware

import (
	"cmp"
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/a2139e8d/latchkey/internal/excerpt"
)

// log writes a line about the request, unless enough lines of its kind were written lately. Its context is that
// of the request as it came in: a log handler must not find the session there, since another goroutine may be
// opening the session.
func (rq *request) log(level slog.Level, kind, message string, attrs ...slog.Attr) {
	rq.sessions.logLine(rq.base.Context(), level, kind, message, func() []slog.Attr {
		method, route := rq.name()
		return append([]slog.Attr{slog.String("kind", kind), slog.String("session", rq.identity.knownID()),
			slog.String("method", method), slog.String("route", route)}, attrs...)
	})
}

// logLine writes a line with what attrs returns, unless enough lines of its kind were written lately.
func (s *Sessions) logLine(ctx context.Context, level slog.Level, kind, message string, attrs func() []slog.Attr) {
	logger := cmp.Or(s.options.Logger, slog.Default())
	if !logger.Enabled(ctx, level) {
		return
	}
	leftOut, ok := s.damper.pass(kind, 1, time.Now())
	if !ok {
		return
	}
	all := attrs()
	if leftOut > 0 {
		all = append(all, slog.Int("left_out", leftOut))
	}
	logger.LogAttrs(ctx, level, "latchkey: "+message, all...)
}

// logFailure logs an error that becomes the response.
func (rq *request) logFailure(err error) {
	rule := ruleOf(err)
	rq.seen.failed(err)
	rq.identity.mu.Lock()
	mode := rq.mode
	rq.identity.mu.Unlock()
	rq.log(rule.level, rule.kind, "session failed",
		slog.String("mode", mode.String()), slog.Int("status", rule.status), slog.Any("error", err))
}

// logBeforePanic logs the error of a commit after which the handler has panicked. So it is not the response.
func (rq *request) logBeforePanic(err error) {
	rule := ruleOf(err)
	rq.log(rule.level, rule.kind, "session failed, and then its handler panicked", slog.Any("error", err))
}

// keyAttr shows a key of a session, cut short: a handler may have made the key from what a client has sent.
func keyAttr(key string) slog.Attr { return slog.String("key", excerpt.Of(key)) }

// A damper keeps a flood of requests from becoming a flood of lines.
type damper struct {
	most int           // lines of one kind
	per  time.Duration // in this time

	mu    sync.Mutex
	kinds map[string]*flow // as many as there are kinds, which clients cannot make up
}

type flow struct {
	since           time.Time // when its period began
	passed, leftOut int       // in that period
}

func newDamper(most int, per time.Duration) *damper {
	return &damper{most: most, per: per, kinds: make(map[string]*flow)}
}

// pass reports whether a line of this kind, which tells of n things, may be written now, and how many things were
// left out before it.
func (d *damper) pass(kind string, n int, now time.Time) (leftOut int, ok bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	f := d.kinds[kind]
	if f == nil {
		f = &flow{since: now}
		d.kinds[kind] = f
	}
	if now.Sub(f.since) >= d.per {
		leftOut, *f = f.leftOut, flow{since: now}
	}
	if f.passed == d.most {
		f.leftOut += n
		return 0, false
	}
	f.passed++
	return leftOut, true
}

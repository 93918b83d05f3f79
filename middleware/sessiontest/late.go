package sessiontest

import (
	"context"
	"log/slog"
	"sync"
	"testing"
)

// ExpectLateChange says that one change of a session will come after the session was saved: a Set after
// Commit, after Flush, or after a response that outgrew its buffer. Such a change is lost, so it fails a test
// that does not expect it. With ExpectLateChange the test fails if there is no late change. Of more than ten late changes in
// a second, only ten are seen, since the log has no more lines of a kind.
func (st *Site) ExpectLateChange() {
	st.log.mu.Lock()
	defer st.log.mu.Unlock()
	st.log.expected++
}

// A record is the test's log, for as long as the test runs. It knows how many late changes are expected.
type record struct {
	tb testing.TB

	mu       sync.Mutex // guards the fields below, and is held while tb is used
	closed   bool       // the test has ended
	expected int        // late changes that are still expected
}

// handler returns the handler of the site's log: it writes to the record and, if there is one, to the
// program's own logger.
func (r *record) handler(own *slog.Logger) slog.Handler {
	all := []slog.Handler{slog.NewTextHandler(r, &slog.HandlerOptions{Level: slog.LevelDebug})}
	if own != nil {
		all = append(all, own.Handler())
	}
	return watcher{slog.NewMultiHandler(all...), r}
}

// Write implements [io.Writer].
func (r *record) Write(line []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return len(line), nil
	}
	return r.tb.Output().Write(line)
}

// close is called when the test ends. Later log lines must not reach the test.
func (r *record) close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
	if r.expected > 0 {
		r.tb.Errorf("sessiontest: ExpectLateChange: %d late changes did not come", r.expected)
	}
}

// late fails the test, unless the change was expected.
func (r *record) late(call, key, saved string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.closed:
	case r.expected > 0:
		r.expected--
	default:
		r.tb.Errorf("sessiontest: %s(%q) came after the session was saved by %s, so it is lost: "+
			"change the session before that", call, key, saved)
	}
}

// A watcher finds late changes in the log: the lines that say what has saved the session.
type watcher struct {
	slog.Handler
	record *record
}

// Handle implements [slog.Handler].
func (w watcher) Handle(ctx context.Context, line slog.Record) error {
	found := map[string]string{}
	line.Attrs(func(a slog.Attr) bool {
		found[a.Key] = a.Value.String()
		return true
	})
	if saved, ok := found["saved_by"]; ok {
		w.record.late(found["call"], found["key"], saved)
	}
	return w.Handler.Handle(ctx, line)
}

// WithAttrs implements [slog.Handler].
func (w watcher) WithAttrs(attrs []slog.Attr) slog.Handler {
	return watcher{w.Handler.WithAttrs(attrs), w.record}
}

// WithGroup implements [slog.Handler].
func (w watcher) WithGroup(name string) slog.Handler {
	return watcher{w.Handler.WithGroup(name), w.record}
}

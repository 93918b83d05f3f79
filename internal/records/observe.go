package records

import (
	"context"
	"errors"
	"reflect"
	"strings"
	"time"

	"github.com/a2139e8d/latchkey/internal/lease"
	"github.com/a2139e8d/latchkey/internal/scripting"
)

// # Observers
//
// What happens is told to the [Collector] in the context, which belongs to a request, or else to all observers. Telling
// is possible with a mutex held, since neither a Collector nor an observer may do more then than to take a note.
// Without observers nothing is told, and that costs one comparison.

// An Exchange is told after each exchange with Redis.
type Exchange = scripting.Exchange

// A Notice tells what has happened to a session. Package middleware documents the fields.
type Notice struct {
	Session, What, How, To string
	Time                   time.Time
	Err                    error
}

// A Wait is what a wait for the lock has found, also if it was in vain.
type Wait struct {
	Ahead           int    // in line when the request came
	Process, Behind string // whom it waited for: another process, or "" for this one; and the label
	Passed          bool   // the request before it in line has passed the session on
	Bytes           int    // of the record, if it is known
}

// A Collector takes notes of what happens on behalf of a request. The request's context has it, by [CollectorKey]. Its
// methods may be called with mutexes of this package held: they take a note, and call nobody.
type Collector interface {
	// WithoutCancel is context.WithoutCancel of the Collector's context.
	WithoutCancel() context.Context
	// Exchanged is called after an exchange.
	Exchanged(Exchange)
	// Noticed is called when something has happened to a session. If it is urgent, the request may go on for long, and
	// observers want to know before its end.
	Noticed(n *Notice, urgent bool)
	// Sized is called when a record was read without the lock, and when it was stored.
	Sized(bytes int)
}

// CollectorKey is the key of a Collector in a context.
type CollectorKey struct{ Of *Engine }

// An Observer is told what no Collector takes.
type Observer interface {
	// Exchanged and Noticed are called with mutexes held: they only take a note. All observers are told the same Notice,
	// so none may change it.
	Exchanged(context.Context, Exchange)
	Noticed(context.Context, *Notice)
}

// An observer is an Observer, and the identity by which Observe recognises it.
type observer struct {
	Observer
	who any
}

// Observe makes the engine tell o all that happens, except what the Collectors take. who identifies o: if it observes the
// engine already, Observe does nothing.
func (s *Engine) Observe(who any, o Observer) {
	s.observing.Lock()
	defer s.observing.Unlock()
	var all []observer
	if had := s.observers.Load(); had != nil {
		all = append(all, *had...)
	}
	for _, other := range all {
		if Same(other.who, who) {
			return
		}
	}
	all = append(all, observer{o, who})
	s.observers.Store(&all)
	s.runner.Observe(s.exchanged)
}

// Same reports whether two observers are one. Those that cannot be compared are taken for different ones.
func Same(a, b any) bool {
	return reflect.ValueOf(a).Comparable() && reflect.ValueOf(b).Comparable() && a == b
}

// observed reports whether there are observers.
func (s *Engine) observed() bool { return s.observers.Load() != nil }

// withoutCancel is context.WithoutCancel. For a Collector that would cost an allocation, and another each time that it is
// looked for.
func withoutCancel(ctx context.Context) context.Context {
	if c, ok := ctx.(Collector); ok {
		return c.WithoutCancel()
	}
	return context.WithoutCancel(ctx)
}

// collectorIn returns the Collector of a context, or nil.
func (s *Engine) collectorIn(ctx context.Context) Collector {
	c, _ := ctx.Value(CollectorKey{s}).(Collector)
	return c
}

// exchanged tells of an exchange.
func (s *Engine) exchanged(ctx context.Context, x Exchange) {
	if c := s.collectorIn(ctx); c != nil {
		c.Exchanged(x)
		return
	}
	for _, o := range *s.observers.Load() {
		o.Exchanged(ctx, x)
	}
}

// Tell tells what has happened to a session.
func (s *Engine) Tell(ctx context.Context, n *Notice) { s.tell(ctx, n, false) }

func (s *Engine) tell(ctx context.Context, n *Notice, urgent bool) {
	if !s.observed() {
		return
	}
	if c := s.collectorIn(ctx); c != nil {
		c.Noticed(n, urgent)
		return
	}
	for _, o := range *s.observers.Load() {
		o.Noticed(ctx, n)
	}
}

// notice tells what has happened to a session at a time.
func (s *Engine) notice(ctx context.Context, at time.Time, id, what, how string, err error) {
	if s.observed() {
		s.Tell(ctx, &Notice{Session: id, What: what, How: how, Time: at, Err: err})
	}
}

// waitOf returns the Wait of a hold, or of one that was not acquired.
func waitOf(h *Hold) Wait {
	found := h.ticket.Found()
	w := Wait{Ahead: found.Ahead()}
	w.Behind, w.Process = found.Behind()
	if h.tenure != nil {
		w.Passed, w.Bytes = !h.first, int(h.tenure.size) // which only the present hold changes
	}
	return w
}

// sized tells the size of the session's record.
func (s *Engine) sized(ctx context.Context, size int) {
	if !s.observed() {
		return
	}
	if c := s.collectorIn(ctx); c != nil {
		c.Sized(size)
	}
}

// why returns how a lock was lost, by the error that its holder is told.
func why(lost error) string {
	for _, w := range []struct {
		err error
		how string
	}{
		{errChanged, "changed"}, {errEnded, "ended"}, {errGone, "gone"}, {lease.ErrKeyGone, "gone"},
		{lease.ErrMaxHold, "max_hold"}, {lease.ErrLeaseOver, "lease"}, {ErrUnavailable, "unavailable"},
	} {
		if errors.Is(lost, w.err) {
			return w.how
		}
	}
	return "taken"
}

// lost tells that a hold has lost its lock. ends: it has found that by its own commit.
func (s *Engine) lost(h *Hold, reason error, ends bool) {
	if s.observed() {
		n := &Notice{Session: h.id, What: "lost", How: why(reason), Time: time.Now(), Err: lease.WhyLost(reason)}
		s.tell(h.ticket.Context, n, !ends)
	}
}

// swept tells that the lock with this key was removed in the background.
func (s *Engine) swept(key string) {
	if s.observed() {
		s.notice(context.Background(), time.Now(), s.idOfLock(key), "swept", "", nil)
	}
}

// idOfLock returns the public ID of the session whose lock has this key.
func (s *Engine) idOfLock(key string) string {
	tag, rest, _ := strings.Cut(strings.TrimPrefix(key, s.options.Prefix+"{"), "}")
	if own, ofUser := strings.CutPrefix(strings.TrimSuffix(rest, ".lock"), ":"); ofUser {
		return tag + "." + own
	}
	return tag
}

// A Standing is how things stand with one session: who holds it, and who waits for it in this process.
type Standing struct {
	ID      string
	Label   string    // of the holder
	Process string    // of the holder, or "" for this one
	Since   time.Time // when the holder has acquired the session; zero: it is not held, or that is unknown
	Waiting []lease.Waiter
}

// Standings returns the sessions that requests of this process hold or wait for, in no order.
func (s *Engine) Standings() (all []Standing) {
	for _, at := range s.lines.Standings() {
		one := Standing{ID: s.idOfLock(at.Key), Waiting: at.Waiting}
		if at.Known {
			one.Label, one.Process, one.Since = at.Holder.Label, lease.Elsewhere(at.Holder), at.Holder.Since
		}
		all = append(all, one)
	}
	return all
}

// ThisProcess returns the host and process ID of this process, as Standing.Process has those of others.
func ThisProcess() string { return lease.ThisProcess().String() }

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

// What is told: an *[Exchange], a *[Notice], an [Opened] or a [Written].
type (
	// An Exchange is told after each exchange with Redis.
	Exchange = scripting.Exchange
	// A Notice tells what has happened to a session. Package middleware documents the fields.
	Notice struct {
		Session, What, How, To string
		Time                   time.Time
		Err                    error
	}
	// Opened is told when a session was locked or read, and also when that has failed after a wait.
	Opened struct {
		Ahead           int    // in line when the request came
		Process, Behind string // whom it waited for: another process, or "" for this one; and the label
		Passed          bool   // the request before it in line has passed the session on
		Bytes           int    // of the record, if it is known
	}
	// Written is told before a record is sent: its size.
	Written int
)

// A Collector takes a note of what happens on behalf of a request. Its request's context has it, by [CollectorKey].
type Collector interface{ Collect(e any) }

// CollectorKey is the key of a Collector in a context.
type CollectorKey struct{}

// An observer is told what no Collector takes.
type observer struct {
	who  any
	tell func(context.Context, any)
}

// Observe makes the engine call tell with all that happens, except what the Collectors take. If who observes the engine
// already, Observe does nothing.
func (s *Engine) Observe(who any, tell func(context.Context, any)) {
	s.observing.Lock()
	defer s.observing.Unlock()
	var all []observer
	if had := s.observers.Load(); had != nil {
		all = append(all, *had...)
	}
	for _, o := range all {
		if same(o.who, who) {
			return
		}
	}
	all = append(all, observer{who, tell})
	s.observers.Store(&all)
	s.runner.Observe(func(ctx context.Context, x *Exchange) { s.Tell(ctx, x) })
}

// same reports whether two observers are one. Those that cannot be compared are taken for different ones.
func same(a, b any) bool {
	return reflect.ValueOf(a).Comparable() && reflect.ValueOf(b).Comparable() && a == b
}

// observed reports whether there are observers.
func (s *Engine) observed() bool { return s.observers.Load() != nil }

// Tell tells that something has happened.
func (s *Engine) Tell(ctx context.Context, what any) {
	all := s.observers.Load()
	if all == nil {
		return
	}
	if c, ok := ctx.Value(CollectorKey{}).(Collector); ok {
		c.Collect(what)
		return
	}
	for _, o := range *all {
		o.tell(ctx, what)
	}
}

// notice tells what has happened to a session.
func (s *Engine) notice(ctx context.Context, id, what, how string, err error) {
	if s.observed() {
		s.Tell(ctx, &Notice{Session: id, What: what, How: how, Time: time.Now(), Err: err})
	}
}

// opened tells of a Take.
func (s *Engine) opened(ctx context.Context, h *Hold) {
	found := h.ticket.Found
	if found == nil { // it was not observed when it came
		return
	}
	o := Opened{Ahead: found.Ahead}
	if owner, known := found.Holder.Owner(); known {
		o.Behind, o.Process = owner.Label, elsewhere(owner)
	}
	if h.tenure != nil {
		o.Passed, o.Bytes = !h.first, int(h.tenure.size) // which only the present hold changes
	}
	s.Tell(ctx, o)
}

// written tells of a record that is about to be sent.
func (s *Engine) written(ctx context.Context, size int) {
	if s.observed() {
		s.Tell(ctx, Written(size))
	}
}

// why returns how a lock was lost, by the error that its holder is told.
func why(lost error) string {
	for _, w := range []struct {
		err error
		how string
	}{
		{errChanged, "changed"}, {errEnded, "ended"}, {errGone, "gone"},
		{lease.ErrMaxHold, "max_hold"}, {lease.ErrLeaseOver, "lease"}, {lease.ErrKeyGone, "lease"}, {ErrUnavailable, "unavailable"},
	} {
		if errors.Is(lost, w.err) {
			return w.how
		}
	}
	return "taken"
}

// lost tells that a hold has lost its lock.
func (s *Engine) lost(h *Hold, reason error) {
	if s.observed() {
		s.notice(h.ticket.Context, h.id, "lost", why(reason), lease.WhyLost(reason))
	}
}

// swept tells that the lock with this key was removed in the background.
func (s *Engine) swept(key string) {
	if s.observed() {
		s.notice(context.Background(), s.idOfLock(key), "swept", "", nil)
	}
}

// idOfLock returns the public id of the session whose lock has this key.
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
			one.Label, one.Process, one.Since = at.Holder.Label, elsewhere(at.Holder), at.Holder.Since
		}
		all = append(all, one)
	}
	return all
}

// elsewhere returns the process of an owner, or "" if it is this one.
func elsewhere(o lease.Owner) string {
	if here := lease.ThisProcess(); o.Host == here.Host && o.PID == here.PID {
		return ""
	}
	o.Label = ""
	return o.String()
}

// ThisProcess returns the host and process ID of this process, as Standing.Process has those of others.
func ThisProcess() string { return lease.ThisProcess().String() }

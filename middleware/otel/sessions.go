package otellatchkey

import (
	"errors"

	"github.com/a2139e8d/latchkey/middleware"
	"github.com/a2139e8d/latchkey/store"
	"go.opentelemetry.io/otel/attribute"
)

// happenings has a counter for each thing that a SessionEvent tells of, and how it may happen. Things that a later
// version may add are not counted.
var happenings = map[string]struct {
	name, unit, description string
	hows                    []string
}{
	"began": {"latchkey.session.began", "{session}", "Sessions that were stored for the first time, perhaps by a login.",
		[]string{"", "login"}},
	"renewed": {"latchkey.session.renewed", "{session}", "Sessions that got a new ID, by a login or by Renew.",
		[]string{"renew", "login"}},
	"ended": {"latchkey.session.ended", "{session}", "Sessions that were ended.",
		[]string{"destroy", "end", "end_all", "max_sessions", "gave_way", "other_user"}},
	"ended_open": {"latchkey.session.ended_open", "{request}", "Requests whose session ended while they had it open.", []string{""}},
	"lost": {"latchkey.lock.lost", "{lock}", "Locks that their holder has lost.",
		[]string{"lease", "max_hold", "taken", "changed", "ended", "gone", "unavailable"}},
	"extended": {"latchkey.lock.extended", "{lease}", "Leases that were extended, or, with an error.type, could not be.", []string{""}},
	"handed_over": {"latchkey.lock.handed_over", "{lock}", "Locks that this process has released while another process stood in the queue for them.",
		[]string{""}},
	"swept": {"latchkey.lock.swept", "{lock}", "Locks that were removed in the background.", []string{""}},
}

// sessions are the metrics of SessionEvents.
type sessions struct {
	series map[string]*table[sessionKey, *count] // by what has happened
}

type sessionKey struct{ how, failure string }

func newSessions(m *meter) sessions {
	s := sessions{make(map[string]*table[sessionKey, *count])}
	for what, h := range happenings {
		total := m.counter(h.name, h.unit, h.description)
		s.series[what] = newSessionTable(total)
		for _, how := range h.hows {
			s.series[what].of(&sessionKey{how: how}, len(how))
		}
		if what == "extended" {
			for _, failure := range []string{"lost", "timeout", "connection_refused", "connection_closed", other} {
				s.series[what].of(&sessionKey{failure: failure}, 0)
			}
		}
	}
	return s
}

func newSessionTable(total *counter) *table[sessionKey, *count] {
	hows := words(16)
	bound := func(k sessionKey) sessionKey { return sessionKey{hows.word(k.how), k.failure} }
	series := func(k sessionKey) *count {
		var attributes []attribute.KeyValue
		if k.how != "" {
			attributes = append(attributes, howKey.String(k.how))
		}
		return total.of(appendErrorType(attributes, k.failure)...)
	}
	return newTable(bound, series, func() *count { return total.of(overflow) })
}

func (s *sessions) measure(e *middleware.SessionEvent) {
	series, ok := s.series[e.What]
	if !ok {
		return
	}
	key := sessionKey{how: e.How}
	switch { // How says why a lock was lost
	case e.What != "extended":
	case errors.Is(e.Err, store.ErrLost):
		key.failure = "lost"
	default:
		key.failure = failure(e.Err)
	}
	series.of(&key, len(key.how)).Add(1)
}

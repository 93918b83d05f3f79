package history

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/anishathalye/porcupine"
)

// A Summary counts the requests of a visitor, or of several.
type Summary struct {
	Answered, Silent int // with and without a response, except those whose session a logout has ended under them
	Writes           int // with a response
	Sessions         int
	Anew             int           // of them begun with a dead cookie, by a login or a navigation
	Longest          time.Duration // of all requests
	Why              string        // the last request without a response failed
}

// Add adds the counts of other.
func (s *Summary) Add(other Summary) {
	s.Answered += other.Answered
	s.Silent += other.Silent
	s.Writes += other.Writes
	s.Sessions += other.Sessions
	s.Anew += other.Anew
	s.Longest = max(s.Longest, other.Longest)
	s.Why = cmp.Or(other.Why, s.Why)
}

// WroteSince reports whether a write that was sent after the moment, to an existing session, has had its
// response.
func (v *Visitor) WroteSince(moment time.Time) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.latest > 0 && v.latest > moment.Sub(v.began)
}

// Summary returns the counts so far.
func (v *Visitor) Summary() Summary {
	v.mu.Lock()
	defer v.mu.Unlock()
	s := Summary{Answered: v.answered, Silent: v.silent - v.endedUnderWay(), Why: v.why, Writes: v.writes, Longest: v.longest, Sessions: len(v.over), Anew: v.afresh}
	if v.now != nil {
		s.Sessions++
	}
	return s
}

// lent is for how long after a logout with an old cookie a process may once more pass the session on, if that has no user.
// Such a logout does not wait for requests.
const lent = int64(time.Second)

// endedUnderWay returns how many requests without a response were under way beside a logout with an old cookie of
// their session, or came just after it.
func (v *Visitor) endedUnderWay() (n int) {
	for _, s := range v.sessions() {
		for _, failed := range s.silent {
			if slices.ContainsFunc(s.operations, func(op porcupine.Operation) bool {
				in := op.Input.(Operation)
				return in.What == Logout && isMembers(in.Cookie) && op.Call < failed.Return && failed.Call-lent < op.Return
			}) {
				n++
			}
		}
	}
	return n
}

// most is the largest number of mistakes that are reported.
const most = 3

// Check checks all histories. Call it after Run.
func (v *Visitor) Check() error {
	errs := append(v.wrongs[:len(v.wrongs):len(v.wrongs)], v.comebacks()...)
	for _, s := range v.sessions() {
		if err := Check(s.operations); err != nil {
			errs = append(errs, err)
		}
	}
	if n := len(errs) - most; n > 0 {
		errs = append(errs[:most:most], fmt.Errorf("and %d more", n))
	}
	return errors.Join(errs...)
}

// sessions returns all sessions that the visitor has had.
func (v *Visitor) sessions() []*session {
	all := v.over[:len(v.over):len(v.over)]
	if v.now != nil {
		all = append(all, v.now)
		if v.now.next != nil {
			all = append(all, v.now.next)
		}
	}
	return all
}

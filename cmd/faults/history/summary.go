package history

import (
	"errors"
	"fmt"
	"time"
)

// A Summary is what a visitor, or several, met.
type Summary struct {
	Answered, Silent int
	Sessions         int
	Longest          time.Duration // request
}

// Add adds another's.
func (s *Summary) Add(other Summary) {
	s.Answered += other.Answered
	s.Silent += other.Silent
	s.Sessions += other.Sessions
	s.Longest = max(s.Longest, other.Longest)
}

// WroteSince tells whether a write that was sent after the moment was answered.
func (v *Visitor) WroteSince(moment time.Time) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.latest > 0 && v.latest > moment.Sub(v.began)
}

// Summary may be asked for at any time.
func (v *Visitor) Summary() Summary {
	v.mu.Lock()
	defer v.mu.Unlock()
	s := Summary{Answered: v.answered, Silent: v.silent, Longest: v.longest, Sessions: len(v.over)}
	if v.now != nil {
		s.Sessions++
	}
	return s
}

// most is how many mistakes are told.
const most = 3

// Check judges all histories. It is for when Run has returned.
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

// sessions returns all that the visitor had.
func (v *Visitor) sessions() []*session {
	if v.now == nil {
		return v.over
	}
	return append(v.over[:len(v.over):len(v.over)], v.now)
}

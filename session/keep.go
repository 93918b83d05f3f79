package session

import (
	"fmt"

	"github.com/a2139e8d/latchkey/internal/keep"
	"github.com/a2139e8d/latchkey/internal/values"
)

func init() {
	keep.Open = func(s any, c keep.Config) error { return s.(*Session).open(c) }
	keep.Close = func(s any, closedBy string) (keep.Change, error) { return s.(*Session).close(closedBy) }
	keep.Used = func(s any) bool { return s.(*Session).isUsed() }
}

func (s *Session) open(c keep.Config) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.load(c); err != nil {
		return err
	}
	if s.keeper == nil { // when the session is opened again it has the same keeper
		s.keeper = c.Keeper
	}
	return nil
}

// load opens the session with the content that c gives, and forgets what was done to it. If load fails, nothing has
// changed. It is called with mu held.
func (s *Session) load(c keep.Config) (err error) {
	var loaded values.Values
	switch {
	case c.Snapshot != nil:
		loaded = c.Snapshot.Values()
	case c.Data != nil:
		loaded, err = values.Parse(c.Data)
	}
	if err == nil {
		s.config, s.values = c, loaded
		s.change, s.given, s.culprit, s.err, s.closedBy = keep.Change{}, nil, "", nil, ""
	}
	return err
}

func (s *Session) close(closedBy string) (keep.Change, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closedBy != "" {
		return keep.Change{}, s.err
	}
	s.closedBy = closedBy
	c := s.change
	if c.Destroyed {
		s.err = nil // a value that could not be set is no longer wanted
	}
	if s.err == nil && s.config.ReadOnly && s.changed() {
		s.err = fmt.Errorf("session: %s: %w", s.culprit, ErrReadOnly)
	}
	c.Changed = (c.Changed || c.Remembered) && (!s.isNew() || s.values.Len() > 0 || c.User != "")
	// The user's list says when the session ends, and is updated only together with an ID.
	c.Renewed = c.Renewed || c.Remembered && s.user() != ""
	if s.err == nil && (c.Changed || c.Renewed) && !c.Destroyed {
		c.Snapshot = s.values.Snapshot()
	}
	return c, s.err
}

func (s *Session) isUsed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.used
}

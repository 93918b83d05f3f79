package session

import (
	"context"
	"fmt"
	"time"

	"github.com/a2139e8d/latchkey/internal/keep"
)

// Open returns a session over stored data, or an error if these are not what a
// [Change] held. It is for package middleware.
func Open(c keep.Config) (*Session, error) {
	s := &Session{config: c}
	var err error
	if snapshot, ok := c.Snapshot.(*Snapshot); ok {
		s.values = snapshot.values
	} else if c.Data != nil {
		s.values, err = parse(c.Data)
	}
	return s, err
}

// Resume opens a sealed session again, over what is stored by now. If it fails, nothing has
// changed. It is for package middleware.
func (s *Session) Resume(c keep.Config) error {
	opened, err := Open(c)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	// The keeper and the limits are those of the request, and read without the mutex.
	s.config.Data, s.config.Snapshot = c.Data, c.Snapshot
	s.config.ReadOnly, s.config.Remembered, s.config.User = c.ReadOnly, c.Remembered, c.User
	s.values = opened.values
	s.unseal()
	return nil
}

// NewLazyContext returns a copy of ctx in which [Start] opens a session with open, once. An open
// that fails is tried again by the next Start. It is for package middleware.
func NewLazyContext(ctx context.Context, open func(context.Context) (*Session, error)) context.Context {
	return context.WithValue(ctx, keep.ContextKey{}, &lazy{open: open})
}

// A Change is what a request did to its session.
type Change struct {
	// Changed: Data must be stored. False for a new session that is empty again,
	// which need not exist at all.
	Changed bool
	// Renewed, Destroyed: the method of that name was called, or one that includes it.
	Renewed, Destroyed bool
	// User is who Login was called with last; "": it was not called.
	User string
	// Remembered: the method Remember was called, and that changes something.
	Remembered bool
	// Remember is what it was called with last.
	Remember time.Duration
	// Dropped is the first key that was set after Destroy, and so will not be saved.
	Dropped string
	// DroppedLogin: Login was called after Destroy, and so nobody is logged in.
	DroppedLogin bool
	// Snapshot is what must be stored; nil if nothing need be.
	Snapshot *Snapshot
}

// wanted reports whether the handler wants anything to be changed.
func (c *Change) wanted() bool { return c.Changed || c.Renewed || c.Destroyed || c.Remembered }

// Data returns the session, encoded; nil if nothing need be stored.
func (c Change) Data() []byte {
	if c.Snapshot == nil {
		return nil
	}
	return c.Snapshot.AppendTo(nil)
}

// A Snapshot is a session's content, which never changes. Any number of sessions may be opened with
// it: that spares a hot session of 20 values 4.5 µs for each request.
type Snapshot struct{ values values }

// Size returns how many bytes [Snapshot.AppendTo] appends.
func (s *Snapshot) Size() int { return s.values.size() }

// AppendTo appends the encoded form to b.
func (s *Snapshot) AppendTo(b []byte) []byte { return s.values.appendTo(b) }

// Seal closes the session to changes and returns what was changed. Its argument names what sealed
// the session, for the report of a later change. The error is that of the first Set that failed,
// or wraps [ErrReadOnly]; nothing may be stored then. A second Seal reports no change.
//
// A handler's session is sealed by its commit. A test may seal it to see what the handler did.
func (s *Session) Seal(by string) (Change, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.sealed != "" {
		return Change{}, s.err
	}
	s.sealed = by
	c := s.change
	if c.Destroyed {
		s.err = nil // what could not be set is no longer wanted
	}
	if s.err == nil && s.config.ReadOnly && c.wanted() {
		s.err = fmt.Errorf("session: %s: %w", s.culprit, ErrReadOnly)
	}
	c.Changed = (c.Changed || c.Remembered) && (!s.isNew() || s.values.length > 0 || c.User != "")
	// The user's list says when the session ends, and gets that together with an id.
	c.Renewed = c.Renewed || c.Remembered && s.user() != ""
	if s.err == nil && (c.Changed || c.Renewed) && !c.Destroyed {
		c.Snapshot = &Snapshot{s.values.share()}
	}
	return c, s.err
}

// Used reports whether anything has asked for the session's content so far, so that the answer
// may depend on it. It is for package middleware.
func (s *Session) Used() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.used
}

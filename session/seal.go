package session

import (
	"context"
	"fmt"
)

// Config is how whoever keeps sessions opens one with [Open]. Handlers never
// see it.
type Config struct {
	// Data is what an earlier Seal returned; nil for a new session.
	Data []byte
	// Memory is what Seal returned with Data, where that is still known: Data need
	// not be decoded then.
	Memory *Memory
	// ReadOnly makes every change an [ErrReadOnly] at the commit.
	ReadOnly bool
	// Keeper is asked for what a session does not know itself. Without one it has
	// no id, and a commit only seals it.
	Keeper Keeper
}

// A Keeper keeps one session. Its methods may be called by any goroutine.
type Keeper interface {
	// SessionID returns the public id as it is at the time of the call.
	SessionID() string
	// CommitSession is what Session.Commit calls. It is to call Seal, once.
	CommitSession(ctx context.Context) error
	// ChangedLate is called for every change that comes after the Seal, with the
	// method, its key if any, and what sealed the session.
	ChangedLate(method, key, sealed string)
}

// Open returns a session over stored data, or an error where that is not what
// Seal returned.
func Open(c Config) (*Session, error) {
	s := &Session{config: c}
	switch {
	case c.Data == nil:
		return s, nil
	case c.Memory != nil:
		s.values, s.borrowed = c.Memory.values, true
		return s, nil
	}
	var err error
	s.values, err = parse(c.Data)
	return s, err
}

// A Memory is the content of a session when it was sealed, decoded. It does not
// change, and any number of sessions may be opened with it.
type Memory struct{ values values }

// Change is what a request did to its session.
type Change struct {
	// Used: the answer may depend on the session.
	Used bool
	// Changed: Data is to be stored. False for a new session that is empty
	// again, which need not exist at all.
	Changed bool
	// Renewed, Destroyed: the method of that name was called.
	Renewed, Destroyed bool
	// Data is the session, encoded; nil where nothing needs storing.
	Data []byte
	// Memory is the same, decoded.
	Memory *Memory
}

// Seal ends the time in which the session may be changed, and returns what is
// to be done. by names what ends it, for the report of a later change. The
// error is that of the first Set that failed, or wraps [ErrReadOnly]; nothing
// is to be stored then. A second Seal reports no change.
func (s *Session) Seal(by string) (Change, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.sealed != "" {
		return Change{Used: s.used}, s.err
	}
	s.sealed = by
	c := Change{
		Used:      s.used,
		Changed:   s.changed && (s.config.Data != nil || len(s.values) > 0),
		Renewed:   s.renewed,
		Destroyed: s.destroyed,
	}
	if s.destroyed {
		s.err = nil // what could not be set is not wanted any more
	}
	if s.err == nil && s.config.ReadOnly && (s.changed || s.renewed || s.destroyed) {
		s.err = fmt.Errorf("session: %w", ErrReadOnly)
	}
	if s.err == nil && (c.Changed || c.Renewed) && !c.Destroyed {
		c.Data, c.Memory = format(s.values), &Memory{s.values}
	}
	return c, s.err
}

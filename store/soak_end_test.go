//go:build soak

package store

import (
	"context"
	"crypto/rand"
	"errors"
	"strings"
	"time"

	"github.com/a2139e8d/latchkey/internal/redistest"
)

// end ends a request's hold in one of the possible ways.
func (s *soak) end(ctx context.Context, slot int, session *soaked, h *Hold, floor int, mark string, chance int) (what string, err error) {
	read, err := parseLink(h.Record.Data)
	if err != nil {
		h.Release(ctx)
		return "take", err
	}
	next := read.add(mark)
	switch {
	case chance < 3000:
		if err = h.Touch(ctx); err == nil {
			err = session.chain.check(read, floor)
		}
		return "touch", err
	case chance < 3800:
		h.Release(ctx)
		return "panic", nil
	case chance < 3805:
		return "save too much", h.Save(ctx, []byte(strings.Repeat("x", DefaultMaxBytes)))
	case chance < 3810:
		session.ended.Store(true)
		err = h.Destroy(ctx)
		if err == nil {
			err = session.chain.check(read, floor)
		}
		s.replace(slot, session)
		return "destroy", err
	case chance < 3840:
		session.ended.Store(true)
		after := &soaked{id: rand.Text(), chain: session.chain}
		err = h.Renew(ctx, after.id, next.bytes())
		if err != nil {
			session.chain.doubt()
			s.replace(slot, session)
			return "renew", err
		}
		if err = session.chain.answer(next); err == nil {
			err = session.chain.check(read, floor)
		}
		s.sessions[slot].CompareAndSwap(session, after)
		return "renew", err
	}
	if err = h.Save(ctx, next.bytes()); err != nil {
		session.chain.doubt()
		return "save", err
	}
	if err = session.chain.answer(next); err == nil {
		err = session.chain.check(read, floor)
	}
	return "save", err
}

// judge checks what was read without a lock.
func (s *soak) judge(slot int, session *soaked, r Record, floor int, err error) error {
	if err != nil {
		return s.excuse(slot, session, err)
	}
	l, err := parseLink(r.Data)
	if err == nil {
		err = session.chain.check(l, floor)
	}
	return err
}

// excuse returns the error of a request that got no session. If it is that the session
// has gone, somebody must have ended it.
func (s *soak) excuse(slot int, session *soaked, err error) error {
	if errors.Is(err, ErrGone) || errors.Is(err, ErrNotFound) {
		if !session.ended.Load() {
			s.t.Errorf("session %s: %v, but nobody ended it", session.id, err)
		}
		s.replace(slot, session) // if whoever ended it could not
	}
	return err
}

// settle checks, now that all faults are over, that each session has what was
// answered, can be used from all processes, and that no lock and no queue is left.
func (s *soak) settle(r *redistest.Server) {
	ctx := s.t.Context()
	for slot := range s.sessions {
		session := s.sessions[slot].Load()
		if session.ended.Load() {
			continue // it was, perhaps, and there is no other because Redis was away
		}
		for _, st := range s.stores {
			floor := session.chain.floor()
			begun := time.Now()
			h, err := st.Take(ctx, session.id, soakTerms)
			if err != nil {
				s.t.Errorf("in the end: %v", err)
				continue
			}
			if took := time.Since(begun); took > soakTerms.LockWait/2 {
				s.t.Errorf("in the end, a session was shut for %v", took)
			}
			read, err := parseLink(h.Record.Data)
			if err == nil {
				err = session.chain.check(read, floor)
			}
			if err == nil {
				err = session.chain.sum(read)
			}
			next := read.add("end." + rand.Text()[:4])
			if err == nil {
				err = h.Save(ctx, next.bytes())
			}
			if err == nil {
				err = session.chain.answer(next)
			}
			if err != nil {
				s.t.Errorf("in the end: %v", err)
			}
		}
	}
	s.clean(r)
}

// clean checks that nothing is left but records. A late command may have put a place
// into the queue of a session that has ended since. Nobody asks for that one any more,
// so it stays for a minute; see queue.lua. So does a large record that was staged and not renamed.
func (s *soak) clean(r *redistest.Server) {
	left := func() (keys []string) {
		for _, key := range r.Keys(s.t) {
			if strings.HasSuffix(key, ".lock") || strings.HasSuffix(key, ".queue") || strings.Contains(key, ".new.") {
				keys = append(keys, key)
			}
		}
		return keys
	}
	for begun := time.Now(); len(left()) > 0; time.Sleep(10 * time.Millisecond) {
		if time.Since(begun) > time.Minute+soakPatience {
			s.t.Fatalf("in the end, these are left: %q", left())
		}
	}
}

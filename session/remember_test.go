package session_test

import (
	"strings"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/keep"
	"github.com/a2139e8d/latchkey/session"
)

// What Remember leaves to the commit. A session is saved for it, unless nothing would be different.
func TestRemember(t *testing.T) {
	t.Parallel()
	const day = 24 * time.Hour
	for name, tt := range map[string]struct {
		record     string
		remembered bool
		do         func(*session.Session)
		want       session.Change
	}{
		"an old one":           {`{"a":1}`, false, func(s *session.Session) { s.Remember(day) }, session.Change{Changed: true, Remembered: true, Remember: day}},
		"the longest":          {`{"a":1}`, false, func(s *session.Session) { s.Remember(400 * day) }, session.Change{Changed: true, Remembered: true, Remember: 400 * day}},
		"again":                {`{"a":1}`, true, func(s *session.Session) { s.Remember(day) }, session.Change{Changed: true, Remembered: true, Remember: day}},
		"the last one counts":  {`{}`, false, func(s *session.Session) { s.Remember(day); s.Remember(2 * day) }, session.Change{Changed: true, Remembered: true, Remember: 2 * day}},
		"taken back":           {`{}`, false, func(s *session.Session) { s.Remember(day); s.Remember(0) }, session.Change{}},
		"forgotten":            {`{}`, true, func(s *session.Session) { s.Remember(0) }, session.Change{Changed: true, Remembered: true}},
		"nothing to forget":    {`{}`, false, func(s *session.Session) { s.Remember(0) }, session.Change{}},
		"a new one":            {"", false, func(s *session.Session) { s.Set("a", 1); s.Remember(day) }, session.Change{Changed: true, Remembered: true, Remember: day}},
		"nothing to remember":  {"", false, func(s *session.Session) { s.Remember(day) }, session.Change{Remembered: true, Remember: day}},
		"a login":              {`{}`, false, func(s *session.Session) { s.Renew(); s.Remember(day) }, session.Change{Changed: true, Renewed: true, Remembered: true, Remember: day}},
		"wrong, but destroyed": {`{}`, false, func(s *session.Session) { s.Remember(-day); s.Destroy() }, session.Change{Destroyed: true}},
	} {
		config := keep.Config{Remembered: tt.remembered}
		if tt.record != "" {
			config.Data = []byte(tt.record)
		}
		s := openWith(t, config)
		tt.do(s)
		got, err := s.Seal("test")
		if stored := got.Snapshot != nil; err != nil || stored != (tt.want.Changed && !tt.want.Destroyed) {
			t.Errorf("%s: something to be stored: %v, %v", name, stored, err)
		}
		if got.Snapshot = nil; got != tt.want {
			t.Errorf("%s: %+v, want %+v", name, got, tt.want)
		}
	}
}

// A time that cannot be is an error that sticks, and says the rule.
func TestRememberRefuses(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{
		-1:                   "Remember(-1ns): it must not be negative",
		400*24*time.Hour + 1: "at most 400 days",
		1<<63 - 1:            "at most 400 days",
		-1 << 63:             "must not be negative",
		-time.Second:         "Remember(-1s)",
	} {
		s := open(t, `{"a":1}`)
		s.Remember(d)
		s.Remember(time.Hour) // does not make up for it
		if _, err := s.Seal("test"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Remember(%v): %v, want %q", d, err, want)
		}
	}
}

// Discard takes a Remember back, and Reopen begins with what was saved: without another call
// nothing is to be remembered, but what is remembered can be forgotten.
func TestRememberWithDiscardAndReopen(t *testing.T) {
	t.Parallel()
	const day = 24 * time.Hour
	s := openWith(t, keep.Config{Data: []byte(`{"a":1}`)})
	s.Remember(day)
	s.Discard()
	if got := seal(t, s); got != (session.Change{}) {
		t.Errorf("after Discard: %+v", got)
	}
	for _, d := range []time.Duration{day, 0} {
		must(t, s.Reopen(t.Context()))
		s.Remember(d)
		if got := seal(t, s); !got.Remembered || got.Remember != d {
			t.Errorf("after Remember(%v): %+v", d, got)
		}
	}
	must(t, s.Reopen(t.Context()))
	s.Remember(0)
	if got := seal(t, s); got != (session.Change{}) {
		t.Errorf("after it was forgotten: %+v", got)
	}
}

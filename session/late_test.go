package session_test

import (
	"maps"
	"testing"

	"github.com/a2139e8d/latchkey/internal/keep"
	"github.com/a2139e8d/latchkey/session"
)

// call is the report of a late change.
type call struct{ method, key, sealed string }

func TestAChangeAfterTheSealIsReportedAndNotDone(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		do   func(*session.Session)
		want call
	}{
		"Set":           {func(s *session.Session) { s.Set("a", 2) }, call{"Set", "a", "the first Flush"}},
		"Set, no JSON":  {func(s *session.Session) { s.Set("a", make(chan int)) }, call{"Set", "a", "the first Flush"}},
		"Set, the same": {func(s *session.Session) { s.Set("a", 1) }, call{"Set", "a", "the first Flush"}},
		"Delete":        {func(s *session.Session) { s.Delete("a") }, call{"Delete", "a", "the first Flush"}},
		"Pop":           {func(s *session.Session) { session.Pop[int](s, "a") }, call{"Delete", "a", "the first Flush"}},
		"Clear":         {(*session.Session).Clear, call{"Clear", "", "the first Flush"}},
		"Renew":         {(*session.Session).Renew, call{"Renew", "", "the first Flush"}},
		"Destroy":       {(*session.Session).Destroy, call{"Destroy", "", "the first Flush"}},
		"Remember":      {func(s *session.Session) { s.Remember(1) }, call{"Remember", "", "the first Flush"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var s *session.Session
			var got []call
			s = openWith(t, keep.Config{
				Data: []byte(`{"a":1}`),
				Keeper: keeper{late: func(method, key, sealed string) {
					s.Len() // a keeper may use the session
					got = append(got, call{method, key, sealed})
				}},
			})
			_, err := s.Seal("the first Flush")
			must(t, err)
			if len(got) > 0 {
				t.Errorf("reported before there was a change: %v", got)
			}
			test.do(s)
			if len(got) != 1 || got[0] != test.want {
				t.Errorf("reported %q, want %q", got, test.want)
			}
			if got := maps.Collect(indexed(s)); len(got) != 1 || got["a"] != "1" {
				t.Errorf("the session became %v", got)
			}
			change, err := s.Seal("the end of the handler")
			if err != nil || change.Changed || change.Renewed || change.Destroyed || change.Data() != nil {
				t.Errorf("a second Seal = %+v, %v, want no change", change, err)
			}
			test.do(s)
			if len(got) != 2 || got[1] != test.want {
				t.Errorf("reported %q: the second Seal counts, want the first", got)
			}
		})
	}
}

func TestReadingAfterTheSealIsFine(t *testing.T) {
	t.Parallel()
	s := openWith(t, keep.Config{
		Data:   []byte(`{"a":1}`),
		Keeper: keeper{late: func(method, _, _ string) { t.Errorf("%s reported", method) }},
	})
	s.Set("b", 2)
	seal(t, s)
	a, _ := session.Get[int](s, "a")
	b, _ := session.Get[int](s, "b")
	if a != 1 || b != 2 || s.Len() != 2 || len(keys(s)) != 2 || s.IsNew() {
		t.Errorf("a = %d, b = %d, Len %d, Keys %v, IsNew %v", a, b, s.Len(), keys(s), s.IsNew())
	}
}

func TestWithoutAKeeperALateChangeIsIgnored(t *testing.T) {
	t.Parallel()
	var s session.Session
	seal(t, &s)
	if s.Used() {
		t.Error("used before anybody used it")
	}
	s.Set("a", 1)
	s.Destroy()
	if s.Len() != 0 || !s.Used() {
		t.Error("a late Set was done, or the use of it does not show")
	}
}

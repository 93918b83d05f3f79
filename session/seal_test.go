package session_test

import (
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/a2139e8d/latchkey/internal/keep"
	"github.com/a2139e8d/latchkey/session"
)

func TestSealReturnsWhatWasChanged(t *testing.T) {
	t.Parallel()
	const isNew = "" // no record
	for name, test := range map[string]struct {
		record string
		do     func(*session.Session)
		used   bool
		want   session.Change
		data   string
	}{
		"nothing happened":              {`{"a":1}`, func(*session.Session) {}, false, session.Change{}, ""},
		"nothing happened to a new one": {isNew, func(*session.Session) {}, false, session.Change{}, ""},
		"a Get":                         {`{"a":1}`, func(s *session.Session) { session.Get[int](s, "a") }, true, session.Change{}, ""},
		"a Len":                         {`{"a":1}`, func(s *session.Session) { s.Len() }, true, session.Change{}, ""},
		"a Keys":                        {`{"a":1}`, func(s *session.Session) { s.Keys() }, true, session.Change{}, ""},
		"an IsNew":                      {isNew, func(s *session.Session) { s.IsNew() }, true, session.Change{}, ""},
		"a Set": {`{"a":1}`, func(s *session.Session) { s.Set("b", 2) },
			true, session.Change{Changed: true}, `{"a":1,"b":2}`},
		"a Set in a new one": {isNew, func(s *session.Session) { s.Set("b", 2) },
			true, session.Change{Changed: true}, `{"b":2}`},
		"a Set of the same value":  {`{"a":[1,"x"]}`, func(s *session.Session) { s.Set("a", []any{1, "x"}) }, true, session.Change{}, ""},
		"a Delete of nothing":      {`{"a":1}`, func(s *session.Session) { s.Delete("b") }, true, session.Change{}, ""},
		"a Clear of nothing":       {`{}`, (*session.Session).Clear, true, session.Change{}, ""},
		"a new one emptied again":  {isNew, func(s *session.Session) { s.Set("a", 1); s.Delete("a") }, true, session.Change{}, ""},
		"a new one cleared again":  {isNew, func(s *session.Session) { s.Set("a", 1); s.Clear() }, true, session.Change{}, ""},
		"an old one emptied":       {`{"a":1}`, func(s *session.Session) { s.Delete("a") }, true, session.Change{Changed: true}, `{}`},
		"an old one cleared":       {`{"a":1}`, (*session.Session).Clear, true, session.Change{Changed: true}, `{}`},
		"a Renew":                  {`{"a":1}`, (*session.Session).Renew, true, session.Change{Renewed: true}, `{"a":1}`},
		"a Destroy":                {`{"a":1}`, (*session.Session).Destroy, true, session.Change{Destroyed: true}, ""},
		"a Login":                  {`{"a":1}`, func(s *session.Session) { s.Login("ann") }, true, session.Change{Changed: true, Renewed: true, User: "ann"}, `{"a":1}`},
		"a Login, then Destroy":    {`{"a":1}`, func(s *session.Session) { s.Login("ann"); s.Destroy() }, true, session.Change{Changed: true, Renewed: true, Destroyed: true, User: "ann"}, ""},
		"a Login after Destroy":    {`{"a":1}`, func(s *session.Session) { s.Destroy(); s.Login("ann") }, true, session.Change{Changed: true, Renewed: true, Destroyed: true, User: "ann", DroppedLogin: true}, ""},
		"a Destroy wins":           {`{"a":1}`, func(s *session.Session) { s.Destroy(); s.Renew(); s.Set("a", 2) }, true, session.Change{Changed: true, Renewed: true, Destroyed: true, Dropped: "a"}, ""},
		"a Set before a Destroy":   {`{"a":1}`, func(s *session.Session) { s.Set("a", 2); s.Destroy() }, true, session.Change{Changed: true, Destroyed: true}, ""},
		"an ID is no use of it":    {`{"a":1}`, func(s *session.Session) { s.ID() }, false, session.Change{}, ""},
		"a null is not an absence": {`{}`, func(s *session.Session) { s.Set("a", nil) }, true, session.Change{Changed: true}, `{"a":null}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := new(session.Session)
			if test.record != isNew {
				s = open(t, test.record)
			}
			test.do(s)
			if s.Used() != test.used {
				t.Errorf("Used = %v", s.Used())
			}
			got := seal(t, s)
			data := got.Data()
			if got.Snapshot = nil; got != test.want || string(data) != test.data {
				t.Errorf("Seal = %+v (%s), want %+v (%s)", got, data, test.want, test.data)
			}
		})
	}
}

func TestASetOfWhatJSONCannotHoldFailsTheCommit(t *testing.T) {
	t.Parallel()
	var deep any
	for range 10000 {
		deep = []any{deep}
	}
	type nested struct{ Texts map[string][]string }
	for name, test := range map[string]struct {
		key   string
		value any
		says  string
	}{
		"channel":                    {"key", make(chan int), "unsupported type"},
		"function":                   {"key", func() {}, "unsupported type"},
		"not a number":               {"key", math.NaN(), "unsupported value"},
		"infinity, nested":           {"key", map[string]any{"a": []float64{math.Inf(-1)}}, "unsupported value"},
		"key that is not UTF-8":      {"\xff", 1, "UTF-8"},
		"text that is not UTF-8":     {"key", "a\xc3", "UTF-8"},
		"text, nested":               {"key", nested{map[string][]string{"a": {"b", "\\\xff"}}}, "UTF-8"},
		"key of a map":               {"key", map[string]int{"\xff": 1}, "UTF-8"},
		"raw JSON that is not UTF-8": {"key", json.RawMessage("\"\xff\""), "UTF-8"},
		"raw JSON that is not JSON":  {"key", json.RawMessage(`{`), "unexpected end"},
		"deeper than can be read":    {"key", deep, "too deep"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := open(t, `{"key":"kept"}`)
			s.Set(test.key, test.value)
			if got, ok := session.Get[string](s, "key"); !ok || got != "kept" || s.Len() != 1 {
				t.Errorf("the failed Set left %q, %v, and %d keys", got, ok, s.Len())
			}
			s.Set("other", 1) // what works afterwards does not save it
			s.Set("later", make(chan int))
			change, err := s.Seal("the test")
			if err == nil || !strings.Contains(err.Error(), test.says) || !strings.Contains(err.Error(), "Set(") || change.Data() != nil {
				t.Errorf("Seal = %s, %v, want no data and the first error, of %q", change.Data(), err, test.says)
			}
			if test.says == "unsupported type" && !errors.As(err, new(*json.UnsupportedTypeError)) {
				t.Errorf("%v does not wrap the encoder's error", err)
			}
			if _, again := s.Seal("the test"); !errors.Is(again, err) {
				t.Errorf("a second Seal says %v", again)
			}
		})
	}
}

func TestAReadOnlySessionMayBeReadAndNotWritten(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		do   func(*session.Session)
		want error
	}{
		"reads":           {func(s *session.Session) { session.Get[int](s, "a"); s.Keys(); s.Len(); s.IsNew(); s.ID() }, nil},
		"no real changes": {func(s *session.Session) { s.Set("a", 1); s.Delete("b"); session.Pop[int](s, "b") }, nil},
		"Set":             {func(s *session.Session) { s.Set("a", 2) }, session.ErrReadOnly},
		"Delete":          {func(s *session.Session) { s.Delete("a") }, session.ErrReadOnly},
		"Pop":             {func(s *session.Session) { session.Pop[int](s, "a") }, session.ErrReadOnly},
		"Clear":           {(*session.Session).Clear, session.ErrReadOnly},
		"Renew":           {(*session.Session).Renew, session.ErrReadOnly},
		"Destroy":         {(*session.Session).Destroy, session.ErrReadOnly},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := openWith(t, keep.Config{Data: []byte(`{"a":1}`), ReadOnly: true})
			test.do(s)
			for range 2 { // a second Seal says the same
				if change, err := s.Seal("the test"); !errors.Is(err, test.want) || change.Data() != nil {
					t.Errorf("Seal = %s, %v, want no data and %v", change.Data(), err, test.want)
				}
			}
		})
	}
}

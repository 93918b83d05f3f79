package session_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/keep"
	"github.com/a2139e8d/latchkey/session"
)

func TestCloseReturnsWhatWasChanged(t *testing.T) {
	t.Parallel()
	const isNew = "" // no record
	for name, test := range map[string]struct {
		record string
		do     func(*session.Session)
		used   bool
		want   keep.Change
		data   string
	}{
		"nothing happened":              {`{"a":1}`, func(*session.Session) {}, false, keep.Change{}, ""},
		"nothing happened to a new one": {isNew, func(*session.Session) {}, false, keep.Change{}, ""},
		"a Get":                         {`{"a":1}`, func(s *session.Session) { session.Get[int](s, "a") }, true, keep.Change{}, ""},
		"a Len":                         {`{"a":1}`, func(s *session.Session) { s.Len() }, true, keep.Change{}, ""},
		"a Keys":                        {`{"a":1}`, func(s *session.Session) { s.Keys() }, true, keep.Change{}, ""},
		"an IsNew":                      {isNew, func(s *session.Session) { s.IsNew() }, true, keep.Change{}, ""},
		"a Set": {`{"a":1}`, func(s *session.Session) { s.Set("b", 2) },
			true, keep.Change{Changed: true}, `{"a":1,"b":2}`},
		"a Set in a new one": {isNew, func(s *session.Session) { s.Set("b", 2) },
			true, keep.Change{Changed: true}, `{"b":2}`},
		"a Set of the same value":  {`{"a":[1,"x"]}`, func(s *session.Session) { s.Set("a", []any{1, "x"}) }, true, keep.Change{}, ""},
		"a Delete of nothing":      {`{"a":1}`, func(s *session.Session) { s.Delete("b") }, true, keep.Change{}, ""},
		"a Clear of nothing":       {`{}`, (*session.Session).Clear, true, keep.Change{}, ""},
		"a new one emptied again":  {isNew, func(s *session.Session) { s.Set("a", 1); s.Delete("a") }, true, keep.Change{}, ""},
		"a new one cleared again":  {isNew, func(s *session.Session) { s.Set("a", 1); s.Clear() }, true, keep.Change{}, ""},
		"an old one emptied":       {`{"a":1}`, func(s *session.Session) { s.Delete("a") }, true, keep.Change{Changed: true}, `{}`},
		"an old one cleared":       {`{"a":1}`, (*session.Session).Clear, true, keep.Change{Changed: true}, `{}`},
		"a Renew":                  {`{"a":1}`, (*session.Session).Renew, true, keep.Change{Renewed: true}, `{"a":1}`},
		"a Destroy":                {`{"a":1}`, (*session.Session).Destroy, true, keep.Change{Destroyed: true}, ""},
		"a Login":                  {`{"a":1}`, func(s *session.Session) { s.Login("ann") }, true, keep.Change{Changed: true, Renewed: true, User: "ann"}, `{"a":1}`},
		"a Remember, then a Login": {`{"a":1}`, func(s *session.Session) { s.Remember(time.Hour); s.Login("ann") }, true, keep.Change{Changed: true, Renewed: true, User: "ann", Remembered: true, Remember: time.Hour}, `{"a":1}`},
		"a Login, then Destroy":    {`{"a":1}`, func(s *session.Session) { s.Login("ann"); s.Destroy() }, true, keep.Change{Changed: true, Renewed: true, Destroyed: true, User: "ann"}, ""},
		"a Login after Destroy":    {`{"a":1}`, func(s *session.Session) { s.Destroy(); s.Login("ann") }, true, keep.Change{Destroyed: true, DroppedLogin: true}, ""},
		"a Destroy wins":           {`{"a":1}`, func(s *session.Session) { s.Destroy(); s.Renew(); s.Set("a", 2) }, true, keep.Change{Changed: true, Renewed: true, Destroyed: true, Dropped: "a"}, ""},
		"a Set before a Destroy":   {`{"a":1}`, func(s *session.Session) { s.Set("a", 2); s.Destroy() }, true, keep.Change{Changed: true, Destroyed: true}, ""},
		"an ID does not use it":    {`{"a":1}`, func(s *session.Session) { s.ID() }, false, keep.Change{}, ""},
		"a null is not an absence": {`{}`, func(s *session.Session) { s.Set("a", nil) }, true, keep.Change{Changed: true}, `{"a":null}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := new(session.Session)
			if test.record != isNew {
				s = open(t, test.record)
			}
			test.do(s)
			if keep.Used(s) != test.used {
				t.Errorf("Used = %v", keep.Used(s))
			}
			got := closed(t, s)
			data := got.Data()
			if loggedIn := !got.LoginTime.IsZero(); loggedIn != (got.User != "") || time.Since(got.LoginTime) > time.Minute && loggedIn {
				t.Errorf("the login was at %v", got.LoginTime)
			}
			got.LoginTime = time.Time{}
			if got.Snapshot = nil; got != test.want || string(data) != test.data {
				t.Errorf("Close = %+v (%s), want %+v (%s)", got, data, test.want, test.data)
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
	type hidden struct{ n int }
	type outer struct {
		hidden `json:"-"`
	}
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
		"error":                      {"key", errors.New("x"), "a *errors.errorString cannot be stored: errors.errorString has no exported field"},
		"embedded, but left out":     {"key", outer{hidden{1}}, "has no exported field"},
		"value without a pointer":    {"key", *big.NewInt(1), "only a *big.Int encodes itself: store a pointer"},
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
			change, err := keep.Close(s, "the test")
			if err == nil || !strings.Contains(err.Error(), test.says) || !strings.Contains(err.Error(), "Set(") || change.Data() != nil {
				t.Errorf("Close = %s, %v, want no data and the first error, of %q", change.Data(), err, test.says)
			}
			if test.says == "unsupported type" && !errors.As(err, new(*json.UnsupportedTypeError)) {
				t.Errorf("%v does not wrap the encoder's error", err)
			}
			if _, again := keep.Close(s, "the test"); !errors.Is(again, err) {
				t.Errorf("a second Close says %v", again)
			}
		})
	}
}

// A Login of a malformed user fails the commit. Until then, the session belongs to nobody.
func TestALoginOfNoUserLogsNobodyIn(t *testing.T) {
	t.Parallel()
	for _, user := range []string{"", strings.Repeat("x", 513), "\xff"} {
		for _, fails := range []string{"a user must have", "Set("} {
			s := open(t, `{}`)
			if fails == "Set(" { // before, and this error stays
				s.Set("a", make(chan int))
			}
			s.Login(user)
			if s.User() != "" || !s.LoginTime().IsZero() {
				t.Errorf("the user is %.20q since %v", s.User(), s.LoginTime())
			}
			if _, err := keep.Close(s, "the test"); err == nil || !strings.Contains(err.Error(), fails) {
				t.Errorf("Close = %v, want an error of %q", err, fails)
			}
		}
	}
}

// The error of a write names the first call that changed something.
func TestAReadOnlySessionMayBeReadAndNotWritten(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		do    func(*session.Session)
		names string // "" if nothing is wrong
	}{
		"reads":           {func(s *session.Session) { session.Get[int](s, "a"); s.Keys(); s.Len(); s.IsNew(); s.ID() }, ""},
		"no real changes": {func(s *session.Session) { s.Set("a", 1); s.Delete("b"); session.Pop[int](s, "b") }, ""},
		"Set":             {func(s *session.Session) { s.Set("a", 2) }, `Set("a")`},
		"Delete":          {func(s *session.Session) { s.Delete("a"); s.Set("late", 1) }, `Delete("a")`},
		"Pop":             {func(s *session.Session) { session.Pop[int](s, "b"); session.Pop[int](s, "a") }, `Delete("a")`},
		"Clear":           {(*session.Session).Clear, "Clear: "},
		"Renew":           {func(s *session.Session) { s.Renew(); s.Set("user", "ann") }, "Renew: "},
		"Destroy":         {(*session.Session).Destroy, "Destroy: "},
		"Remember":        {func(s *session.Session) { s.Remember(time.Hour); s.Renew() }, "Remember: "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := openWith(t, keep.Config{Data: []byte(`{"a":1}`), ReadOnly: true})
			test.do(s)
			for range 2 { // a second Close says the same
				change, err := keep.Close(s, "the test")
				if errors.Is(err, session.ErrReadOnly) != (test.names != "") || change.Data() != nil {
					t.Errorf("Close = %s, %v", change.Data(), err)
				}
				if err != nil && !strings.Contains(err.Error(), test.names) {
					t.Errorf("%v does not name %s", err, test.names)
				}
			}
		})
	}
}

// call is the report of a late change.
type call struct{ method, key, closedBy string }

func TestAChangeAfterTheCloseIsReportedAndNotDone(t *testing.T) {
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
				Keeper: keeper{late: func(method, key, closedBy string) {
					s.Len() // a keeper may use the session
					got = append(got, call{method, key, closedBy})
				}},
			})
			_, err := keep.Close(s, "the first Flush")
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
			change, err := keep.Close(s, "the end of the handler")
			if err != nil || change.Changed || change.Renewed || change.Destroyed || change.Data() != nil {
				t.Errorf("a second Close = %+v, %v, want no change", change, err)
			}
			test.do(s)
			if len(got) != 2 || got[1] != test.want {
				t.Errorf("reported %q: the second Close counts, want the first", got)
			}
		})
	}
}

var errTooLarge = errors.New("too large")

func openLimited(t *testing.T, data string, limit int) *session.Session {
	return openWith(t, keep.Config{Data: []byte(data), MaxBytes: limit, TooLarge: errTooLarge})
}

// If there is no room, the Set itself fails, not the commit much later, and it keeps nothing. So a handler that
// stores what a client sends holds no more than MaxBytes of it.
func TestASetFindsNoRoom(t *testing.T) {
	t.Parallel()
	s := openLimited(t, "{}", 1000)
	for i := range 10_000 {
		s.Set(fmt.Sprint("field", i), i)
	}
	if s.Len() > 100 {
		t.Errorf("a session of at most 1000 bytes holds %d values", s.Len())
	}
	_, err := keep.Close(s, "test")
	if !errors.Is(err, errTooLarge) || !strings.Contains(err.Error(), `Set("field`) {
		t.Errorf("Close = %v, want ErrTooLarge, and the key that had no room", err)
	}
}

func TestRoomIsCountedToTheByte(t *testing.T) {
	t.Parallel()
	const stored = `{"a":1,"b":"two","\"quoted\"":3}`
	for name, do := range map[string]func(*session.Session){
		"a new value":         func(s *session.Session) { s.Set("new", "value") },
		"a new quoted key":    func(s *session.Session) { s.Set(`"`, 1) },
		"a longer value":      func(s *session.Session) { s.Set("b", "three") },
		"a shorter value":     func(s *session.Session) { s.Set("b", "") },
		"less of one, more":   func(s *session.Session) { s.Delete(`"quoted"`); s.Set("long", "0123456789") },
		"cleared, and filled": func(s *session.Session) { s.Clear(); s.Set("d", 1); s.Set("e", 1) },
	} {
		unlimited := openLimited(t, stored, 0)
		do(unlimited)
		size := len(closed(t, unlimited).Data())
		fits, tight := openLimited(t, stored, max(size, len(stored))), openLimited(t, stored, size-1)
		do(fits)
		closed(t, fits)
		do(tight)
		_, err := keep.Close(tight, "test")
		if shrinks := name == "a shorter value"; errors.Is(err, errTooLarge) == shrinks {
			t.Errorf("%s: %d bytes where %d are allowed: %v", name, size, size-1, err)
		}
	}
}

// Remember leaves the end of the session to the commit. The session is saved for it, unless nothing would be
// different.
func TestRemember(t *testing.T) {
	t.Parallel()
	const day = 24 * time.Hour
	for name, tt := range map[string]struct {
		record     string
		remembered bool
		do         func(*session.Session)
		want       keep.Change
	}{
		"an old one":           {`{"a":1}`, false, func(s *session.Session) { s.Remember(day) }, keep.Change{Changed: true, Remembered: true, Remember: day}},
		"the longest":          {`{"a":1}`, false, func(s *session.Session) { s.Remember(400 * day) }, keep.Change{Changed: true, Remembered: true, Remember: 400 * day}},
		"again":                {`{"a":1}`, true, func(s *session.Session) { s.Remember(day) }, keep.Change{Changed: true, Remembered: true, Remember: day}},
		"the last one counts":  {`{}`, false, func(s *session.Session) { s.Remember(day); s.Remember(2 * day) }, keep.Change{Changed: true, Remembered: true, Remember: 2 * day}},
		"taken back":           {`{}`, false, func(s *session.Session) { s.Remember(day); s.Remember(0) }, keep.Change{}},
		"forgotten":            {`{}`, true, func(s *session.Session) { s.Remember(0) }, keep.Change{Changed: true, Remembered: true}},
		"nothing to forget":    {`{}`, false, func(s *session.Session) { s.Remember(0) }, keep.Change{}},
		"a new one":            {"", false, func(s *session.Session) { s.Set("a", 1); s.Remember(day) }, keep.Change{Changed: true, Remembered: true, Remember: day}},
		"nothing to remember":  {"", false, func(s *session.Session) { s.Remember(day) }, keep.Change{Remembered: true, Remember: day}},
		"a login":              {`{}`, false, func(s *session.Session) { s.Renew(); s.Remember(day) }, keep.Change{Changed: true, Renewed: true, Remembered: true, Remember: day}},
		"wrong, but destroyed": {`{}`, false, func(s *session.Session) { s.Remember(-day); s.Destroy() }, keep.Change{Destroyed: true}},
	} {
		config := keep.Config{Remembered: tt.remembered}
		if tt.record != "" {
			config.Data = []byte(tt.record)
		}
		s := openWith(t, config)
		tt.do(s)
		got, err := keep.Close(s, "test")
		if stored := got.Snapshot != nil; err != nil || stored != (tt.want.Changed && !tt.want.Destroyed) {
			t.Errorf("%s: something to be stored: %v, %v", name, stored, err)
		}
		if got.Snapshot = nil; got != tt.want {
			t.Errorf("%s: %+v, want %+v", name, got, tt.want)
		}
	}
}

// An impossible time is an error that sticks, and that says the rule.
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
		if _, err := keep.Close(s, "test"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Remember(%v): %v, want %q", d, err, want)
		}
	}
}

// Discard takes a Remember back. Reopen begins with what was saved: without another call nothing is to be remembered,
// but a remembered session can be forgotten.
func TestRememberWithDiscardAndReopen(t *testing.T) {
	t.Parallel()
	const day = 24 * time.Hour
	s := openWith(t, keep.Config{Data: []byte(`{"a":1}`)})
	s.Remember(day)
	s.Discard()
	if got := closed(t, s); got != (keep.Change{}) {
		t.Errorf("after Discard: %+v", got)
	}
	for _, d := range []time.Duration{day, 0} {
		must(t, s.Reopen(t.Context()))
		s.Remember(d)
		if got := closed(t, s); !got.Remembered || got.Remember != d {
			t.Errorf("after Remember(%v): %+v", d, got)
		}
	}
	must(t, s.Reopen(t.Context()))
	s.Remember(0)
	if got := closed(t, s); got != (keep.Change{}) {
		t.Errorf("after a second Remember(0): %+v", got)
	}
}

package store

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"
)

// An error tells which option is wrong, what it is, and the rule.
func TestTermsCheck(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		terms Terms
		want  []string // parts of the error; none: the terms are good
	}{
		{Terms{}, nil},
		{Terms{TTL: time.Millisecond, Lifetime: time.Millisecond, LockWait: time.Millisecond,
			MaxHold: time.Millisecond, MaxWaiters: 1, MaxBytes: 1}, nil},
		{Terms{TTL: time.Hour, Lifetime: time.Hour}, nil},
		{Terms{TTL: -1}, []string{"TTL", "-1ns", "at least 1ms"}},
		{Terms{TTL: time.Microsecond}, []string{"TTL", "1µs", "at least 1ms"}},
		{Terms{Lifetime: -time.Hour}, []string{"Lifetime", "-1h", "at least 1ms"}},
		{Terms{LockWait: -time.Second}, []string{"LockWait", "-1s", "at least 1ms"}},
		{Terms{MaxHold: 999 * time.Microsecond}, []string{"MaxHold", "999µs", "at least 1ms"}},
		{Terms{MaxWaiters: -1}, []string{"MaxWaiters", "-1", "not be negative"}},
		{Terms{MaxBytes: -5}, []string{"MaxBytes", "-5", "not be negative"}},
		{Terms{TTL: 2 * time.Hour, Lifetime: time.Hour}, []string{"TTL", "2h", "Lifetime", "1h", "live for as long"}},
		{Terms{TTL: time.Hour, GuestTTL: time.Hour}, nil},
		{Terms{TTL: 40 * 365 * 24 * time.Hour, Lifetime: 40 * 365 * 24 * time.Hour, GuestTTL: 40 * 365 * 24 * time.Hour}, []string{"GuestTTL", "350400h", "31 years"}},
		{Terms{GuestTTL: -time.Second}, []string{"GuestTTL", "-1s", "at least 1ms"}},
		{Terms{TTL: time.Minute, GuestTTL: time.Hour}, []string{"GuestTTL", "1h", "TTL", "1m", "not be longer"}},
		{Terms{GuestTTL: time.Hour}, []string{"GuestTTL", "1h", "TTL", "30m", "not be longer"}},
		{Terms{TTL: 25 * time.Hour}, []string{"TTL", "25h", "Lifetime", "24h"}},             // against the default
		{Terms{Lifetime: time.Minute}, []string{"TTL", "30m", "Lifetime", "1m", "be idle"}}, // likewise
	} {
		wantMessage(t, New(&redis.Pool{}, Options{}).Check(tt.terms), tt.want)
	}
}

func TestOptionsCheck(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		options Options
		want    []string
	}{
		{Options{}, nil},
		{Options{Prefix: "app:", Lease: time.Millisecond, Timeout: time.Millisecond}, nil},
		{Options{Prefix: "{app}:"}, []string{"Options.Prefix", "{app}:", "braces"}},
		{Options{Prefix: "app}"}, []string{"Options.Prefix", "app}", "braces"}},
		{Options{Prefix: strings.Repeat("a", 512)}, nil},
		{Options{Prefix: strings.Repeat("a", 513)}, []string{"Options.Prefix", "513 bytes", "at most 512"}},
		{Options{Lease: -time.Second}, []string{"Options.Lease", "-1s", "at least 1ms"}},
		{Options{Lease: time.Microsecond}, []string{"Options.Lease", "1µs", "at least 1ms"}},
		{Options{Timeout: -time.Second}, []string{"Options.Timeout", "-1s", "at least 1ms"}},
		{Options{Timeout: 2}, []string{"Options.Timeout", "2ns", "at least 1ms"}}, // the unit was forgotten
	} {
		made := New(&redis.Pool{}, tt.options)
		wantMessage(t, made.Err(), tt.want)
		if made.Err() != nil {
			wantMessage(t, made.Ping(t.Context()), tt.want)
		}

		opened, err := Open("redis://localhost", tt.options)
		wantMessage(t, err, tt.want)
		if err == nil {
			opened.Close()
		}
	}
}

// A nil pool, and a nil client, is told at start, and is no panic later.
func TestNilPool(t *testing.T) {
	t.Parallel()
	for want, st := range map[string]*Store{"pool is nil": New(nil, Options{}), "client is nil": NewOn(nil, Options{})} {
		wantMessage(t, st.Err(), []string{want})
		_, err := st.Load(t.Context(), theID, Terms{})
		wantError(t, "Load", err, ErrUnavailable)
		_, err = st.Take(t.Context(), theID, Terms{})
		wantError(t, "Take", err, ErrUnavailable)
		wantError(t, "Close", st.Close(), nil)
	}
}

// wantMessage checks that err has all parts in its text, or is nil where there
// are none.
func wantMessage(t *testing.T, err error, parts []string) {
	t.Helper()
	if err == nil || parts == nil {
		if err != nil || parts != nil {
			t.Errorf("error %v, want one with %q", err, parts)
		}
		return
	}
	for _, part := range parts {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("error %q does not say %q", err, part)
		}
	}
}

// The idle time-out counts from now, the absolute one from the creation, and the
// earlier of the two ends the session.
func TestExpiry(t *testing.T) {
	t.Parallel()
	const decade = 10 * 365 * 24 * time.Hour
	const never time.Duration = math.MaxInt64
	for name, tt := range map[string]struct {
		terms Terms
		age   time.Duration
		want  time.Duration
	}{
		"new":             {Terms{TTL: time.Minute, Lifetime: time.Hour}, 0, time.Minute},
		"in between":      {Terms{TTL: time.Minute, Lifetime: time.Hour}, 30 * time.Minute, time.Minute},
		"both at once":    {Terms{TTL: time.Minute, Lifetime: time.Hour}, 59 * time.Minute, time.Minute},
		"near the end":    {Terms{TTL: time.Minute, Lifetime: time.Hour}, 59*time.Minute + 30*time.Second, 30 * time.Second},
		"at the end":      {Terms{TTL: time.Minute, Lifetime: time.Hour}, time.Hour, time.Millisecond},
		"past the end":    {Terms{TTL: time.Minute, Lifetime: time.Hour}, 2 * time.Hour, time.Millisecond},
		"clock went back": {Terms{TTL: time.Minute, Lifetime: time.Hour}, -time.Hour, time.Minute},
		"ten years":       {Terms{TTL: decade, Lifetime: decade}, 0, decade},
		"never":           {Terms{TTL: time.Minute, Lifetime: never}, decade, time.Minute},
		"not even idle":   {Terms{TTL: never, Lifetime: never}, 0, never},
		"27 decades on":   {Terms{TTL: never, Lifetime: never}, 27 * decade, never - 27*decade},
		"27 decades back": {Terms{TTL: never, Lifetime: never}, -27 * decade, never},
	} {
		if got := tt.terms.expiry(&Record{Created: born}, born.Add(tt.age)); got != tt.want.Milliseconds() {
			t.Errorf("%s: %d ms, want %v", name, got, tt.want)
		}
	}
}

// A lifetime is over at its end, and the longest one there is never. The records'
// own times may be anything.
func TestExpired(t *testing.T) {
	t.Parallel()
	const never time.Duration = math.MaxInt64
	for name, tt := range map[string]struct {
		lifetime time.Duration
		created  time.Time
		want     bool
	}{
		"new":               {time.Hour, born, false},
		"near the end":      {time.Hour, born.Add(time.Millisecond - time.Hour), false},
		"at the end":        {time.Hour, born.Add(-time.Hour), true},
		"never":             {never, born, false},
		"never, since 1970": {never, time.UnixMilli(0), false},
		"the last moment":   {never, time.UnixMilli(math.MaxInt64), false},
		"the first moment":  {never, time.UnixMilli(math.MinInt64), true},
	} {
		terms := Terms{Lifetime: tt.lifetime}
		if got := terms.expired(&Record{Created: tt.created}, born); got != tt.want {
			t.Errorf("%s: expired is %v", name, got)
		}
		if got := tt.created.UnixMilli() <= terms.outlived(born); got != tt.want {
			t.Errorf("%s: a script takes %v for outlived, that is %v", name, terms.outlived(born), got)
		}
	}
}

package records

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/gomodule/redigo/redis"
)

// An error names the wrong option, its value, and the rule.
func TestTermsCheck(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		terms Terms
		want  []string // parts of the error; none: the terms are good
	}{
		{Terms{}, nil},
		{Terms{TTL: time.Millisecond, Lifetime: time.Millisecond, LockWait: time.Millisecond,
			MaxHold: time.Millisecond, MaxWaiters: 1, MaxBytes: 1}, nil},
		{Terms{TTL: -1}, []string{"TTL", "-1ns", "at least 1ms"}},
		{Terms{Lifetime: -time.Hour}, []string{"Lifetime", "-1h", "at least 1ms"}},
		{Terms{LockWait: -time.Second}, []string{"LockWait", "-1s", "at least 1ms"}},
		{Terms{MaxHold: 999 * time.Microsecond}, []string{"MaxHold", "999µs", "at least 1ms"}},
		{Terms{MaxWaiters: -1}, []string{"MaxWaiters", "-1", "not be negative"}},
		{Terms{MaxBytes: -5}, []string{"MaxBytes", "-5", "not be negative"}},
		{Terms{TTL: 2 * time.Hour, Lifetime: time.Hour}, []string{"TTL", "2h", "Lifetime", "1h", "must not be shorter"}},
		{Terms{TTL: 40 * 365 * 24 * time.Hour, Lifetime: 40 * 365 * 24 * time.Hour, GuestTTL: 40 * 365 * 24 * time.Hour}, []string{"GuestTTL", "350400h", "31 years"}},
		{Terms{GuestTTL: -time.Second}, []string{"GuestTTL", "-1s", "at least 1ms"}},
		{Terms{TTL: time.Minute, GuestTTL: time.Hour}, []string{"GuestTTL", "1h", "TTL", "1m", "not be longer"}},
		{Terms{GuestTTL: time.Hour}, []string{"GuestTTL", "1h", "TTL", "30m", "not be longer"}},
		{Terms{TTL: 25 * time.Hour}, []string{"TTL", "25h", "Lifetime", "24h"}},                         // against the default
		{Terms{Lifetime: time.Minute}, []string{"TTL", "30m", "Lifetime", "1m", "must not be shorter"}}, // likewise
	} {
		wantMessage(t, tt.terms.Check(), tt.want)
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
		{Options{Prefix: strings.Repeat("a", 512)}, nil},
		{Options{Prefix: strings.Repeat("a", 513)}, []string{"Options.Prefix", "513 bytes", "at most 512"}},
		{Options{Lease: -time.Second}, []string{"Options.Lease", "-1s", "at least 1ms"}},
		{Options{Lease: maxLease}, nil},
		{Options{Lease: math.MaxInt64}, []string{"Options.Lease", "at most 8760h0m0s"}},
		{Options{Timeout: 2}, []string{"Options.Timeout", "2ns", "at least 1ms"}}, // no unit
	} {
		wantMessage(t, onPool(&redis.Pool{}, tt.options).Err(), tt.want)
	}
}

// A store with wrong options does nothing: every call fails, and says why.
func TestAStoreWithWrongOptionsIsOfNoUse(t *testing.T) {
	t.Parallel()
	s := redistest.Embedded(t)
	good := process(t, s)
	create(t, good, "0")
	read, err := good.Load(t.Context(), theID, Terms{})
	must(t, err)
	before := s.Keys(t)
	for name, o := range map[string]Options{
		"prefix": {Prefix: "{app}:"}, "lease": {Lease: -1}, "timeout": {Timeout: 1},
		"encryption": {Encryption: Encryption{WritePlain: true}},
	} {
		st := onPool(s.Pool(t, 1), o)
		for call, use := range map[string]func(ctx context.Context) error{
			"Take":   func(ctx context.Context) error { _, _, err := st.Take(ctx, theID, Terms{}); return err },
			"Load":   func(ctx context.Context) error { _, err := st.Load(ctx, theID, Terms{}); return err },
			"Peek":   func(ctx context.Context) error { _, _, err := st.Peek(ctx, theID, Terms{}); return err },
			"Create": func(ctx context.Context) error { return st.Create(ctx, newID, []byte("0"), Terms{}) },
			"CreateRecord": func(ctx context.Context) error {
				return st.CreateRecord(ctx, idOf(good, "ann", 1), recordOfUser("ann"), Terms{})
			},
			"SaveLoaded": func(ctx context.Context) error {
				_, err := st.SaveLoaded(ctx, theID, read, text("1"), Terms{})
				return err
			},
			"ListUser": func(ctx context.Context) error { _, err := st.ListUser(ctx, "ann", Terms{}); return err },
			"End":      func(ctx context.Context) error { return st.End(ctx, theID) },
			"EndUser":  func(ctx context.Context) error { _, err := st.EndUser(ctx, "ann"); return err },
			"Ping":     st.Ping,
		} {
			if err := use(t.Context()); !errors.Is(err, st.Err()) || st.Err() == nil {
				t.Errorf("wrong %s: %s: %v, want %v", name, call, err, st.Err())
			}
		}
	}
	if after := s.Keys(t); !slices.Equal(after, before) {
		t.Errorf("the keys were %q and are %q", before, after)
	}
	wantData(t, s, "0")
}

// wantMessage checks that err has all parts in its text, or is nil if there are no parts.
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

// The idle timeout counts from now, and the absolute timeout from the creation. The session ends at the earlier
// of the two. A session's own timeouts replace those of the terms. If it has an Until, no other timeout counts.
func TestExpiry(t *testing.T) {
	t.Parallel()
	const never time.Duration = math.MaxInt64
	day := Terms{TTL: time.Hour, Lifetime: 24 * time.Hour}
	for name, tt := range map[string]struct {
		terms Terms
		own   *Times
		age   time.Duration
		want  time.Duration // 0: the session has ended
	}{
		"new":                       {day, nil, 0, time.Hour},
		"in between":                {day, nil, 12 * time.Hour, time.Hour},
		"both at once":              {day, nil, 23 * time.Hour, time.Hour},
		"near the end":              {day, nil, 24*time.Hour - time.Minute, time.Minute},
		"at the end":                {day, nil, 24 * time.Hour, 0},
		"past the end":              {day, nil, 48 * time.Hour, 0},
		"clock went back":           {day, nil, -time.Hour, time.Hour},
		"never":                     {Terms{TTL: time.Hour, Lifetime: never}, nil, 100_000 * time.Hour, time.Hour},
		"not even idle":             {Terms{TTL: never, Lifetime: never}, nil, 0, never},
		"27 decades on":             {Terms{TTL: never, Lifetime: never}, nil, 2_300_000 * time.Hour, never - 2_300_000*time.Hour},
		"a guest":                   {day, &Times{Idle: time.Minute}, 0, time.Minute},
		"a guest near its lifetime": {day, &Times{Idle: time.Minute}, 24*time.Hour - time.Second, time.Second},
		"an old guest":              {day, &Times{Idle: time.Minute}, 24 * time.Hour, 0},
		"more than the terms say":   {day, &Times{Idle: 2 * time.Hour}, 0, 2 * time.Hour},
		"remembered":                {day, &Times{Until: born.Add(720 * time.Hour)}, 719 * time.Hour, time.Hour},
		"remembered until now":      {day, &Times{Until: born.Add(720 * time.Hour)}, 720 * time.Hour, 0},
		"remembered for a minute":   {day, &Times{Until: born.Add(time.Minute)}, 0, time.Minute},
		"a remembered guest":        {day, &Times{time.Minute, born.Add(48 * time.Hour)}, 0, 48 * time.Hour},
	} {
		r, now := Record{Created: born, Own: tt.own}, born.Add(tt.age)
		if got := tt.terms.expiry(&r, now); got != max(1, tt.want.Milliseconds()) {
			t.Errorf("%s: the session expires in %d ms, want %v", name, got, tt.want)
		}
		if got := tt.terms.expired(&r, now); got != (tt.want == 0) {
			t.Errorf("%s: expired is %v", name, got)
		}
		if got := r.Created.UnixMilli() <= tt.terms.outlived(now); tt.own == nil && got != (tt.want == 0) {
			t.Errorf("%s: a script takes %v for outlived, that is %v", name, tt.terms.outlived(now), got)
		}
		if got := tt.terms.Expires(r, now); tt.want > 0 && !got.Equal(now.Add(tt.want)) {
			t.Errorf("%s: the session ends at %v, want %v after %v", name, got, tt.want, now)
		}
	}
}

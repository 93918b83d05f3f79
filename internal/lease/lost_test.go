package lease

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/a2139e8d/latchkey/internal/excerpt"
	"github.com/a2139e8d/latchkey/internal/redistest"
)

// wantErrLost checks that err is an ErrLost and nothing else, and says why.
func wantErrLost(t *testing.T, err error, why string) {
	t.Helper()
	if !errors.Is(err, ErrLost) || errors.Is(err, ErrUnavailable) || errors.Is(err, ErrExpired) || errors.Is(err, ErrForeign) {
		t.Errorf("%v, want an ErrLost and no other error", err)
	}
	if err != nil && !strings.Contains(err.Error(), why) {
		t.Errorf("%q does not say %q", err, why)
	}
}

// A holder that has lost its lock learns why, whenever it asks. Its OnLost functions may use the lease in any
// way, and are called once.
func TestTheCauseOfALossSaysWhy(t *testing.T) {
	silent := func(call) error { pause(time.Minute); return errNoReply }
	type situation struct {
		options Options
		extend  func(call) error
		lose    func(l *Lease)
		once    bool // no extension after the first is tried
		why     string
	}
	each(t, map[string]situation{
		"held for too long":         {Options{Lease: 3 * s, MaxHold: 7 * s}, nil, nil, false, "held for longer than MaxHold, which is 7s"},
		"Redis is away":             {Options{Lease: 9 * s}, fails(errRefused), nil, false, "no try to extend it has succeeded for 6s: redis is unavailable"},
		"Redis is silent":           {Options{Lease: 9 * s}, silent, nil, true, "its lease expired, since Redis has not replied to the command sent 6s ago"},
		"Redis was away before":     {Options{Lease: 3 * s, MaxHold: 7 * s}, first(fails(errRefused)), nil, false, "held for longer than MaxHold"},
		"another has it":            {Options{}, fails(ErrLost), nil, true, "lock was lost"},
		"its key is gone":           {Options{}, fails(ErrExpired), nil, true, "its key is gone"},
		"its key is something else": {Options{}, fails(ErrForeign), nil, true, "the lock's key belongs to something else"},
		"its Extend finds it":       {Options{}, fails(ErrLost), func(l *Lease) { _ = l.Extend(context.Background(), s) }, true, "lock was lost"},
		"what it had read is void":  {Options{}, nil, func(l *Lease) { lose(l, errNoReply) }, false, "the reply was lost"},
	}, func(t *testing.T, tt situation) {
		f := fake{hooks{extend: tt.extend}}
		_, l := newLease(t, &f, tt.options)
		calls, told := make(chan error, 4), l.Lost()
		for range 2 {
			l.OnLost(func(cause error) {
				if l.Validity() != 0 || !isLost(l) {
					t.Error("the lease is not over")
				}
				_ = l.Extend(context.Background(), s)
				calls <- cause
			})
		}
		if tt.lose != nil {
			tt.lose(l)
		}
		<-told
		redistest.Elapse(time.Minute)
		if len(calls) != 2 {
			t.Fatalf("called %d times, want once for each OnLost", len(calls))
		}
		late, cancel := context.WithCancelCause(t.Context())
		l.OnLost(cancel)
		for _, cause := range []error{<-calls, <-calls, context.Cause(late)} {
			wantErrLost(t, cause, tt.why)
			wantErrLost(t, cause, "locker: holding k: lock was lost") // a program may hold many locks
		}
		if tt.once {
			f.wantCalls(t, "Extend", 1)
		}
	})
}

// Redis reports who has the lock instead. A value that is not a token is foreign, also the empty value.
func TestALossNamesTheTaker(t *testing.T) {
	onServers(t, func(t *testing.T, server *redistest.Server) {
		p := newProcess(t, server)
		for value, why := range map[string]string{
			NewToken(BondOf("k"), "POST /cart", time.Now()): " POST /cart has it now",
			channelPrefix + "x/1":                           "it is the turn of another process",
			"else":                                          "its key has been overwritten",
			"":                                              "its key has been overwritten",
		} {
			l := p.mustLock(t, patient)
			server.Do(t, "SET", "k", value)
			wantErrLost(t, l.Extend(t.Context(), time.Minute), why)
			wantErrLost(t, whyLost(l), why)
			err := l.Unlock(t.Context())
			wantErrLost(t, err, why)
			if n := strings.Count(err.Error(), why); n != 1 {
				t.Errorf("%q says %d times why", err, n)
			}
			o := patient
			o.Wait = NoWait
			if _, err := p.lock(t, o); !errors.Is(err, ErrTimeout) || (value == "" || value == "else") != errors.Is(err, ErrForeign) {
				t.Errorf("the lock holds %q: %v", value, err)
			}
			server.Do(t, "DEL", "k")
		}
	})
}

// A caller beyond MaxWaiters learns who has the lock, as far as this process knows: its own holder, or the one
// that its head saw in Redis.
func TestTooManyNamesTheHolder(t *testing.T) {
	var f fake
	o := Options{Label: "GET /slow", MaxWaiters: 1}
	withLease(t, &f, o, func(t *testing.T, here *Locks, l *Lease) {
		var there Locks
		for g, waiters := range map[*Locks]int{here: 1, &there: 2} { // the first one there is the head, and does not count
			ctx, cancel := context.WithCancel(t.Context())
			for range waiters {
				go g.Lock(ctx, "k", &f, Options{})
				synctest.Wait()
			}
			made := len(f.Made("Take"))
			_, err := g.Lock(t.Context(), "k", &f, o)
			who, named := errors.AsType[heldError](err)
			if !errors.Is(err, ErrTooManyWaiters) || errors.Is(err, ErrTimeout) || !named || who.owner.Label != "GET /slow" {
				t.Errorf("%d waiters: %v", waiters, err)
			}
			f.wantCalls(t, "Take", made)
			cancel()
			synctest.Wait()
		}
		mustUnlock(t, l)
	})
}

// A caller whose context ends learns why, and who has the lock. It is no ErrTimeout: Options.Wait has not ended.
func TestTheEndOfAContextNamesTheHolder(t *testing.T) {
	cause := errors.New("the cause")
	var f fake
	withLease(t, &f, Options{Label: "GET /slow"}, func(t *testing.T, here *Locks, l *Lease) {
		var there Locks
		for what, g := range map[string]*Locks{"in line": here, "at Redis": &there} {
			ctx, cancel := context.WithCancelCause(t.Context())
			got := wait(ctx, g, &f, Options{})
			redistest.Elapse(s)
			cancel(cause)
			r := <-got
			who, named := errors.AsType[heldError](r.err)
			if !errors.Is(r.err, cause) || errors.Is(r.err, ErrTimeout) || !named || who.owner.Label != "GET /slow" || r.took != s {
				t.Errorf("%s: %v", what, r.err)
			}
		}
		mustUnlock(t, l)
	})
}

// A token is read as what was written into it. No two tokens are the same. A label is made fit for a line of a
// log, and for a short command.
func TestLabelIsPrintable(t *testing.T) {
	t.Parallel()
	now, seen := time.UnixMilli(1_700_000_000_123), map[string]bool{}
	for label, want := range map[string]string{
		"":                               "",
		"POST /cart":                     "POST /cart",
		" spaces ":                       " spaces ",
		"x/y z/1":                        "x/y z/1",
		"ключ":                           "ключ",
		strings.Repeat("l", 64):          strings.Repeat("l", 64),
		"a\nb\x00c\x7fd":                 "a\uFFFDb\uFFFDc\uFFFDd",
		"escape \x1b[31m":                "escape \uFFFD[31m",
		"no-break\u00a0space, \u202eRTL": "no-break\uFFFDspace, \uFFFDRTL",
		"broken \xff":                    "broken \uFFFD",
		strings.Repeat("x", 65):          strings.Repeat("x", 64),
		strings.Repeat("x", 63) + "ü":    strings.Repeat("x", 63),
		strings.Repeat("x", 62) + "ü":    strings.Repeat("x", 62) + "ü",
		strings.Repeat("日", 30):          strings.Repeat("日", 21),
		strings.Repeat("\x01", 30):       strings.Repeat("\uFFFD", 21),
	} {
		token := NewToken(BondOf("k"), label, now)
		owner, ok := ParseToken(token)
		if !ok || owner.Label != want || owner.PID != os.Getpid() || !owner.Since.Equal(now) || !utf8.ValidString(token) || seen[token[:IDLength]] {
			t.Errorf("label %q: %q is read as %+v, %v", label, token, owner, ok)
		}
		if seen[token[:IDLength]] = true; owner.Host == "" || strings.ContainsAny(owner.Host, " \n") {
			t.Errorf("host %q", owner.Host)
		}
	}
}

func TestOwnerFormat(t *testing.T) {
	t.Parallel()
	const id = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	since := time.UnixMilli(1_700_000_000_000)
	for token, want := range map[string]Owner{
		id + " 1700000000000 web-3/4711":            {"web-3", 4711, "", since},
		id + " 1700000000000 web-3/4711 POST /cart": {"web-3", 4711, "POST /cart", since},
		id + " 1700000000000 a/b/7 x":               {"a/b", 7, "x", since},
		"2.1:" + id + " 1700000000000 web-3/4711":   {"web-3", 4711, "", since}, // a token of a Redlock
		id + " 1700000000000 web-3/4711 a  b\tc\n":  {"web-3", 4711, "a  b\ufffdc\ufffd", since},
		id + " 1700000000000 web-3/1 " + strings.Repeat("x", 1<<20): {
			"web-3", 1, strings.Repeat("x", excerpt.Most-3) + "…", since},
		id + " 1700000000000 /0":                      {"", 0, "", since},
		id + id + " 1700000000000 web-3/4711 longer ": {"web-3", 4711, "longer ", since},
	} {
		if got, ok := ParseToken(token); !ok || got != want {
			t.Errorf("%q is read as %+v, %v", token, got, ok)
		}
	}
	for _, junk := range []string{
		"", " ", "value", id, id + " ", id + " 1700000000000", id + " 1700000000000 ", id + " 1700000000000 web-3",
		id + " 1700000000000 web-3/", id + " 1700000000000 web-3/x", id + "  web-3/4711", id + " soon web-3/4711",
		id + " 99999999999999999999 web-3/4711", id + " 1700000000000 web-3/99999999999999999999",
		id + " 253402300800000 web-3/4711", id + " -99999999999999 web-3/4711", // JSON has no such years
		id[:IDLength-1] + " 1700000000000 web-3/4711", `{"user": 17, "cart": [1, 2, 3], "a": "b/c"}`, "\x00\xff/\xfe 1 2/3",
	} {
		if owner, ok := ParseToken(junk); ok {
			t.Errorf("%q is taken for a token of %+v", junk, owner)
		}
	}
}

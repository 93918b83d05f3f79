package locker

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/a2139e8d/latchkey/testdata/redistest"
)

// A token reads as what went into it, whatever that is.
func TestOwnerOfToken(t *testing.T) {
	t.Parallel()
	now := time.UnixMilli(1_700_000_000_123)
	for _, label := range []string{"", "POST /cart", "a", " spaces ", "x/y z/1", "ключ", strings.Repeat("l", 64)} {
		token := newToken(label, now)
		owner, ok := parseToken(token)
		if !ok || owner.Label != label || owner.PID != os.Getpid() || !owner.Since.Equal(now) {
			t.Errorf("%q is read as %+v, %v", token, owner, ok)
		}
		if owner.Host == "" || strings.ContainsAny(owner.Host, " \n") {
			t.Errorf("host %q", owner.Host)
		}
	}
	one, two := newToken("", now), newToken("", now)
	if one == two {
		t.Error("two tokens are the same")
	}
}

func TestOwnerFormat(t *testing.T) {
	t.Parallel()
	const id = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	since := time.UnixMilli(1_700_000_000_000)
	for token, want := range map[string]Owner{
		id + " 1700000000000 web-3/4711":              {"web-3", 4711, "", since},
		id + " 1700000000000 web-3/4711 POST /cart":   {"web-3", 4711, "POST /cart", since},
		id + " 1700000000000 a/b/7 x":                 {"a/b", 7, "x", since},
		"2.1:" + id + " 1700000000000 web-3/4711":     {"web-3", 4711, "", since}, // a Redlock's
		id + " 1700000000000 web-3/4711 a  b\tc\n":    {"web-3", 4711, "a  b\tc\n", since},
		id + " 1700000000000 /0":                      {"", 0, "", since},
		id + id + " 1700000000000 web-3/4711 longer ": {"web-3", 4711, "longer ", since},
	} {
		if got, ok := parseToken(token); !ok || got != want {
			t.Errorf("%q is read as %+v, %v", token, got, ok)
		}
	}
	for _, junk := range []string{
		"", " ", "value", id, id + " ", id + " 1700000000000", id + " 1700000000000 ", id + " 1700000000000 web-3",
		id + " 1700000000000 web-3/", id + " 1700000000000 web-3/x", id + "  web-3/4711", id + " soon web-3/4711",
		id + " 99999999999999999999 web-3/4711", id + " 1700000000000 web-3/99999999999999999999",
		id[1:] + " 1700000000000 web-3/4711", `{"user": 17, "cart": [1, 2, 3], "a": "b/c"}`, "\x00\xff/\xfe 1 2/3",
	} {
		if owner, ok := parseToken(junk); ok {
			t.Errorf("%q is taken for a token of %+v", junk, owner)
		}
	}
}

// Any bytes may be in a key. Reading them must come to an end, and no more.
func TestOwnerOfJunk(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	token := newToken("label", time.Now())
	for range 20_000 {
		junk := []byte(token)[:random.IntN(len(token)+1)]
		for range random.IntN(4) {
			if len(junk) > 0 {
				junk[random.IntN(len(junk))] = byte(random.IntN(256))
			}
		}
		if err := held(string(junk), time.Now()); !errors.Is(err, ErrTimeout) || err.Error() == "" {
			t.Fatalf("%q: %v", junk, err)
		}
	}
}

// A label is made fit for a line of a log, and for a short command.
func TestLabelIsPrintable(t *testing.T) {
	t.Parallel()
	for label, want := range map[string]string{
		"two words":                      "two words",
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
		token := newToken(label, time.Now())
		owner, _ := parseToken(token)
		if owner.Label != want || len(owner.Label) > 64 || !utf8.ValidString(token) {
			t.Errorf("label %q became %q", label, owner.Label)
		}
	}
}

func TestHeldErrorText(t *testing.T) {
	t.Parallel()
	since := time.UnixMilli(1_700_000_000_000)
	const token = "ABCDEFGHIJKLMNOPQRSTUVWXYZ 1700000000000 web-3/4711"
	for name, tt := range map[string]struct {
		token string
		now   time.Time
		want  string
	}{
		"with a label":         {token + " POST /cart", since.Add(1200 * time.Millisecond), "lock is held by web-3/4711 POST /cart for 1.2s"},
		"without":              {token, since.Add(time.Hour), "lock is held by web-3/4711 for 1h0m0s"},
		"to the millisecond":   {token, since.Add(1_499_999), "lock is held by web-3/4711 for 1ms"},
		"its clock is ahead":   {token, since.Add(-time.Hour), "lock is held by web-3/4711 for 0s"},
		"nobody knows":         {"", since, "lock is still held by another"},
		"not a token":          {"value", since, "lock is still held by another: the lock's key belongs to something else"},
		"since before the era": {strings.Replace(token, "17", "-17", 1), since, "lock is held by web-3/4711 for 944444h26m40s"},
	} {
		err := held(tt.token, tt.now)
		if err.Error() != tt.want {
			t.Errorf("%s: %q", name, err)
		}
		_, named := errors.AsType[*HeldError](err)
		if !errors.Is(err, ErrTimeout) || named != strings.Contains(tt.want, "web-3") || errors.Is(err, ErrForeign) != (tt.token == "value") {
			t.Errorf("%s: what it wraps is wrong: %#v", name, err)
		}
	}
}

// Whoever waits in vain learns who has the lock: in line behind a caller of the
// same process, at the head of it, or behind one who waits himself.
func TestHeldErrorOfWaiters(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		var g, other Guard
		var f fake
		slowly := WithLabel(t.Context(), "GET /slow")
		l, err := g.Lock(slowly, "k", &f, Options{})
		if err != nil {
			t.Fatal(err)
		}
		for _, waiter := range []struct {
			name  string
			guard *Guard
			wait  time.Duration
		}{{"in line", &g, 3 * s}, {"at Redis", &other, 3 * s}, {"behind the one at Redis", &other, 2 * s}} {
			go func() {
				_, err := waiter.guard.Lock(WithLabel(t.Context(), "GET /other"), "k", &f, Options{Wait: waiter.wait})
				held, ok := errors.AsType[*HeldError](err)
				if !ok || held.Owner.Label != "GET /slow" || held.Owner.PID != os.Getpid() || held.For.Truncate(s) != waiter.wait {
					t.Errorf("%s: %v", waiter.name, err)
				}
				if want := "k: lock is held by " + process() + " GET /slow for "; err != nil && !strings.Contains(err.Error(), want) {
					t.Errorf("%s: %v, want %q in it", waiter.name, err, want)
				}
			}()
			synctest.Wait()
		}
		time.Sleep(4 * s)
		mustUnlock(t, l)
	})
}

// The holder has given the lock back, and nobody knows yet who comes next. It
// would be wrong to name the one before.
func TestHeldErrorNamesNobodyGone(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		var g Guard
		f := fake{take: func(_ context.Context, n int, do func() (bool, error)) (bool, error) {
			if n > 1 {
				time.Sleep(5 * s)
			}
			return do()
		}}
		l := lock(t, &g, &f, Options{})
		go func() { mustUnlock(t, lock(t, &g, &f, Options{})) }()
		synctest.Wait()
		mustUnlock(t, l)
		_, err := g.Lock(t.Context(), "k", &f, Options{Wait: s})
		if _, named := errors.AsType[*HeldError](err); named || !errors.Is(err, ErrTimeout) {
			t.Errorf("error %v", err)
		}
		time.Sleep(time.Minute)
	})
}

// A caller whose own context ends is told that, and not who held the lock.
func TestHeldErrorNotForWhoLeaves(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		var g Guard
		var f fake
		l := lock(t, &g, &f, Options{})
		ctx, cancel := context.WithTimeout(t.Context(), s)
		defer cancel()
		_, err := g.Lock(ctx, "k", &f, Options{})
		if _, named := errors.AsType[*HeldError](err); named || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error %v", err)
		}
		mustUnlock(t, l)
	})
}

// In Redis, too: the token tells who it is, and another's value is no lock.
func TestOwnerInRedis(t *testing.T) {
	onServers(t, func(t *testing.T, server *redistest.Server) {
		o := patient
		o.Wait = NoWait
		l, err := newProcess(t, server, o).Lock(WithLabel(t.Context(), "GET /slow"), "k")
		if err != nil {
			t.Fatal(err)
		}
		if token, _ := server.Get(t, "k"); !strings.HasSuffix(token, "/"+strconv.Itoa(os.Getpid())+" GET /slow") {
			t.Errorf("the key holds %q", token)
		}
		_, err = newProcess(t, server, o).Lock(t.Context(), "k")
		if held, ok := errors.AsType[*HeldError](err); !ok || held.Owner.String() != process()+" GET /slow" {
			t.Errorf("error %v", err)
		}
		mustUnlock(t, l)

		server.Do(t, "SET", "k", "something else", "PX", 60_000)
		_, err = newProcess(t, server, o).Lock(t.Context(), "k")
		if !errors.Is(err, ErrTimeout) || !errors.Is(err, ErrForeign) {
			t.Errorf("error %v", err)
		}
	})
}

package embedded

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/a2139e8d/latchkey/internal/embeddedredis"
	"github.com/a2139e8d/latchkey/middleware"
	"github.com/a2139e8d/latchkey/session"
	"github.com/a2139e8d/latchkey/store"
	"go.uber.org/goleak"
)

// After Close, no goroutine of a store is left. None is left after a wrong option either.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A program has sessions in a store of its own.
type program struct {
	store   *store.Store
	redis   *embeddedredis.Redis
	handler http.Handler
}

// start starts a program. A request to /hang holds its session until its context ends. Any other request counts.
func start(t *testing.T, o store.Options, mo middleware.Options) program {
	t.Helper()
	st, redis, err := open(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = st.Close() })
	mo.Keys = [][]byte{[]byte("0123456789abcdef0123456789abcdef")}
	sessions, err := middleware.New(st, mo)
	if err != nil {
		t.Fatal(err)
	}
	return program{st, redis, sessions.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s := session.FromContext(r.Context())
		if r.URL.Path == "/hang" {
			<-r.Context().Done()
			return
		}
		n, _ := session.Get[int](s, "visits")
		s.Set("visits", n+1)
		fmt.Fprint(w, n+1)
	}))}
}

// A visitor keeps cookies.
type visitor struct{ cookies []*http.Cookie }

// gets sends a request, and returns the body of the response.
func (v *visitor) gets(p program, path string) string {
	r := httptest.NewRequestWithContext(context.Background(), http.MethodGet, path, nil)
	for _, cookie := range v.cookies {
		r.AddCookie(cookie)
	}
	w := httptest.NewRecorder()
	p.handler.ServeHTTP(w, r)
	if set := w.Result().Cookies(); len(set) > 0 {
		v.cookies = set
	}
	return w.Body.String()
}

func (v *visitor) wants(t *testing.T, p program, want string) {
	t.Helper()
	if got := v.gets(p, "/"); got != want {
		t.Errorf("the visitor gets %q, want %q", got, want)
	}
}

// Sessions expire as the clock runs: after the idle timeout, and not before.
func TestSessionsExpire(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p, ann := start(t, store.Options{}, middleware.Options{TTL: time.Hour}), visitor{}
		ann.wants(t, p, "1")
		time.Sleep(time.Hour - time.Second)
		ann.wants(t, p, "2")
		time.Sleep(time.Hour - time.Second)
		ann.wants(t, p, "3")
		time.Sleep(time.Hour + time.Second)
		ann.wants(t, p, "1")
	})
}

// A lock expires one Lease after its holder renewed it for the last time.
func TestLocksExpire(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const lease = 3 * time.Second
		p, ann := start(t, store.Options{Lease: lease}, middleware.Options{MaxHold: lease}), visitor{}
		ann.wants(t, p, "1")
		other := ann
		began := time.Now()
		var hanging sync.WaitGroup
		hanging.Go(func() { other.gets(p, "/hang") })
		synctest.Wait()
		ann.wants(t, p, "2")
		if waited := time.Since(began); waited < lease || waited > 2*lease {
			t.Errorf("the session was locked for %v, want %v", waited, lease)
		}
		hanging.Wait()
	})
}

// Concurrent writes of a session are all kept.
func TestAHundredConcurrentWritesAreKept(t *testing.T) {
	t.Parallel()
	p, ann := start(t, store.Options{}, middleware.Options{LockWait: time.Minute}), visitor{}
	ann.wants(t, p, "1")
	var crowd sync.WaitGroup
	for range 100 {
		same := ann
		crowd.Go(func() { same.gets(p, "/") })
	}
	crowd.Wait()
	ann.wants(t, p, "102")
}

// Two stores do not share anything.
func TestTwoStoresAreApart(t *testing.T) {
	t.Parallel()
	one, two := start(t, store.Options{}, middleware.Options{}), start(t, store.Options{}, middleware.Options{})
	ann := visitor{}
	ann.wants(t, one, "1")
	same := ann
	same.wants(t, two, "1")
	ann.wants(t, one, "2")
}

// Prefix and Encryption mean what they mean on any Redis.
func TestKeysAndRecords(t *testing.T) {
	t.Parallel()
	for _, key := range [][]byte{nil, []byte("fedcba9876543210fedcba9876543210")} {
		o := store.Options{Prefix: "shop:"}
		if key != nil {
			o.Encryption.Keys = [][]byte{key}
		}
		p, ann := start(t, o, middleware.Options{}), visitor{}
		ann.wants(t, p, "1")
		ann.wants(t, p, "2")
		keys := p.redis.Keys()
		if len(keys) != 1 || !strings.HasPrefix(keys[0], "shop:{") {
			t.Fatalf("the keys are %q", keys)
		}
		record, err := p.redis.Get(keys[0])
		if sealed := !strings.Contains(record, "visits"); err != nil || sealed != (key != nil) {
			t.Errorf("with key %q the record is %q, %v", key, record, err)
		}
	}
}

// A closed store behaves like any other closed store.
func TestClose(t *testing.T) {
	t.Parallel()
	p := start(t, store.Options{}, middleware.Options{})
	if err := p.store.Ping(t.Context()); err != nil {
		t.Error(err)
	}
	for range 2 {
		if err := p.store.Close(); err != nil {
			t.Error(err)
		}
	}
	if err := p.store.Ping(t.Context()); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("after Close: %v", err)
	}
}

// The log says once that the store forgets its sessions. A wrong option is an error instead.
func TestTheLogSaysThatItForgets(t *testing.T) { // not in parallel, since it replaces the default logger
	var logged bytes.Buffer
	before, writer, flags := slog.Default(), log.Writer(), log.Flags()
	slog.SetDefault(slog.New(slog.NewTextHandler(&logged, nil)))
	defer func() {
		slog.SetDefault(before)
		log.SetOutput(writer)
		log.SetFlags(flags)
	}()
	for says, o := range map[string]store.Options{
		"Options.TLS is set":         {TLS: &tls.Config{MinVersion: tls.VersionTLS13}},
		"Options.Credentials is set": {Credentials: func(context.Context) (string, string, error) { return "", "secret", nil }},
		"Options.Prefix":             {Prefix: "{shop}:"},
		"Options.Lease is -1s":       {Lease: -time.Second},
		"Options.Encryption.Keys":    {Encryption: store.Encryption{Keys: [][]byte{nil}}},
	} {
		if st, err := Open(o); st != nil || err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("the error is %v; it should say %q", err, says)
		}
	}
	if logged.Len() > 0 {
		t.Errorf("the log has %q", &logged)
	}
	st, err := Open(store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	if line := logged.String(); strings.Count(line, "\n") != 1 || !strings.Contains(line, "level=WARN") ||
		!strings.Contains(line, "forgotten when it ends") || !strings.Contains(line, "for development") {
		t.Errorf("the log has %q", line)
	}
}

// On a 32-bit system sessions would fail one by one. To check that, run the test there with GOARCH=386.
func TestOpenNeedsA64BitSystem(t *testing.T) {
	t.Parallel()
	st, err := Open(store.Options{})
	if err == nil {
		defer st.Close()
	}
	if (err == nil) != (strconv.IntSize == 64) {
		t.Errorf("an int has %d bits, and Open returns %v", strconv.IntSize, err)
	}
}

package rueidisstore

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"net"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/locker/transport"
	"github.com/a2139e8d/latchkey/store"
	"github.com/redis/rueidis"
)

// A program may start before its Redis. Until Redis is there, each round trip is refused at once, but rueidis
// does not dial as often. When Redis is there, everything works by itself.
func TestStartBeforeRedis(t *testing.T) {
	t.Parallel()
	s := redistest.Real(t)
	s.Stop(t)
	var dials atomic.Int64
	o := at(s)
	o.DialCtxFn = func(ctx context.Context, address string, d *net.Dialer, _ *tls.Config) (net.Conn, error) {
		dials.Add(1)
		return d.DialContext(ctx, "tcp", address)
	}
	st := openStore(t, o, patient)
	begun := time.Now()
	var tries atomic.Int64
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for time.Since(begun) < 10*retryTime {
				if err := st.Ping(t.Context()); !errors.Is(err, transport.ErrRefused) || !strings.Contains(err.Error(), "connection refused") {
					t.Errorf("Ping: %v", err)
				}
				tries.Add(1)
				time.Sleep(time.Millisecond) // as fast as callers try again
			}
		})
	}
	all.Wait()
	if most := 2 + int64(time.Since(begun)/retryTime); dials.Load() > most || tries.Load() < 2*most {
		t.Errorf("%d dials for %d tries, want at most %d", dials.Load(), tries.Load(), most)
	}
	s.Restart(t)
	redistest.Eventually(t, "Redis is found", func() bool { return st.Ping(t.Context()) == nil })
	create(t, st, "id", "data")
	wantData(t, st, "id", "data")

	s.Stop(t) // a command that cannot be sent any more is certainly not executed
	redistest.Eventually(t, "it is refused", func() bool { return errors.Is(st.Ping(t.Context()), transport.ErrRefused) })
}

// If Redis accepts connections and is silent, a caller waits no longer than its deadline or the timeout.
func TestSilentAtFirst(t *testing.T) {
	t.Parallel()
	s := redistest.Real(t)
	s.Pause(t)
	c := opened(t, at(s), 300*time.Millisecond)
	begun := time.Now()
	_, err := c.Do(t.Context(), "k", transport.Command{"PING"})
	if !errors.Is(err, transport.ErrRefused) || !timeout(err) || time.Since(begun) > 5*time.Second {
		t.Errorf("%v after %v", err, time.Since(begun))
	}
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(10*time.Millisecond, cancel)
	begun = time.Now()
	if _, err = c.Do(ctx, "k", transport.Command{"PING"}); !errors.Is(err, transport.ErrRefused) || time.Since(begun) > 5*time.Second {
		t.Errorf("cancelled: %v after %v", err, time.Since(begun))
	}
	s.Resume(t)
	redistest.Eventually(t, "Redis answers", func() bool {
		_, err := c.Do(t.Context(), "k", transport.Command{"PING"})
		return err == nil
	})
}

func timeout(err error) bool {
	var t interface{ Timeout() bool }
	return errors.As(err, &t) && t.Timeout()
}

// Close ends a store that never had a Redis, or that is just connecting to it. Later round trips are refused.
func TestClose(t *testing.T) {
	t.Parallel()
	s := redistest.Real(t)
	for name, prepare := range map[string]func(st *store.Store){
		"unused": func(*store.Store) {},
		"used":   func(st *store.Store) { st.Ping(t.Context()) },
		"under way": func(st *store.Store) {
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			st.Ping(ctx)
		},
	} {
		st := openStore(t, at(s), patient)
		prepare(st)
		for range 2 {
			if err := st.Close(); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		if err := save(t, st, "id", "data"); !errors.Is(err, store.ErrUnavailable) {
			t.Errorf("%s: %v", name, err)
		}
	}
	redistest.Eventually(t, "no connection is left, but that of this question", func() bool {
		return strings.Count(string(s.Do(t, "CLIENT", "LIST").([]byte)), "\n") == 1
	})
}

// The error says why Redis cannot be reached, and that nothing was sent.
func TestNoWayIn(t *testing.T) {
	t.Parallel()
	s, other := redistest.Real(t), redistest.Real(t)
	wantsTLS := closing(t)
	for want, o := range map[string]rueidis.ClientOption{
		"WRONGPASS":                    {InitAddress: []string{s.Addr}, Username: "app", Password: "wrong"},
		"TLS handshake with " + s.Addr: {InitAddress: []string{s.Addr}, TLSConfig: &tls.Config{MinVersion: tls.VersionTLS12}},
		"perhaps since it is at maxclients, or needs TLS": {InitAddress: []string{wantsTLS}},
		"DB index is out of range":                        {InitAddress: []string{s.Addr}, SelectDB: 1_000_000},
		"InitAddress has several addresses":               at(s, other),
	} {
		t.Run(want, func(t *testing.T) {
			t.Parallel()
			leadsNowhere(t, o, want)
		})
	}
}

// leadsNowhere checks that nothing is sent with these options, and that the error says why.
func leadsNowhere(t *testing.T, o rueidis.ClientOption, why string) {
	t.Helper()
	st := openStore(t, o, store.Options{Timeout: 2 * time.Second})
	var err error
	redistest.Eventually(t, "an error that says so: "+why, func() bool { // a busy machine may be too slow at first
		err = st.Ping(t.Context())
		return err == nil || strings.Contains(err.Error(), why)
	})
	if !errors.Is(err, transport.ErrRefused) {
		t.Error(err)
	}
}

// closing is the address of a server that closes each connection at the first byte.
func closing(t testing.TB) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	all.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = conn.Read(make([]byte, 1000))
			_ = conn.Close()
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		all.Wait()
	})
	return l.Addr().String()
}

// While the sentinels know no master that replies, no goroutine of rueidis stays: each would start others. When the master is
// back, everything works by itself.
func TestNoMasterForLong(t *testing.T) {
	if !*onCluster {
		t.Skip("left out: clusters and Sentinel, without -cluster")
	}
	master := redistest.Real(t)
	o := rueidis.ClientOption{InitAddress: []string{redistest.Sentinel(t, master, 1)}}
	o.Sentinel.MasterSet = redistest.MasterName
	st := openStore(t, o, store.Options{Timeout: time.Second})
	redistest.Await(t, "the master is found", func() error { return st.Ping(t.Context()) })
	master.Stop(t)
	redistest.Eventually(t, "the client is dropped", func() bool {
		failed := st.Ping(t.Context()) != nil
		stacks := make([]byte, 1<<20)
		return failed && !bytes.Contains(stacks[:runtime.Stack(stacks, true)], []byte("rueidis.(*sentinelClient)"))
	})
	master.Restart(t)
	redistest.Await(t, "the master is found again", func() error { return st.Ping(t.Context()) })
}

// A client that is dropped is replaced, whatever callers do meanwhile.
func TestDroppedClientsAreReplaced(t *testing.T) {
	t.Parallel()
	c := opened(t, at(redistest.Real(t)), patient.Timeout)
	ping := func() error {
		_, err := c.Do(t.Context(), "", transport.Command{"PING"})
		return err
	}
	drop := func() {
		if made := c.maker.made.Load(); made != nil {
			c.maker.drop(*made)
		}
	}
	redistest.Await(t, "Redis is found", ping)
	if _, err := c.maker.begin(); err != nil { // by a caller that has seen no client, just before there was one
		t.Fatal(err)
	}
	drop()
	redistest.Await(t, "Redis is found by another client", ping)

	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	var all sync.WaitGroup
	for range 16 {
		all.Go(func() {
			for ctx.Err() == nil {
				if err := ping(); err != nil && !errors.Is(err, transport.ErrUnavailable) {
					t.Error(err)
				}
			}
		})
	}
	for ctx.Err() == nil {
		drop()
		time.Sleep(5 * time.Millisecond)
	}
	all.Wait()
	redistest.Await(t, "Redis is found at last", ping)
}

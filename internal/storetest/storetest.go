// Package storetest checks that a store on any [transport.Client] keeps its promises. The test of a
// client says how to make one:
//
//	func TestStore(t *testing.T) {
//		storetest.Run(t, open)
//	}
//
// Each promise is a subtest, and a function here whose comment states it. Behaviour that does not depend
// on the client is tested in package store.
package storetest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/records"
	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/locker/transport"
)

// An Open returns a client of the Redis at an address, host:port. It closes the client when t ends. Each
// round trip takes at most timeout. The client must speak RESP2, the only protocol that package
// redistest's proxies know.
type Open func(t testing.TB, address string, timeout time.Duration) transport.Client

// Run checks all promises on real servers, each in a parallel subtest.
func Run(t *testing.T, open Open) {
	t.Helper()
	RunOn(t, func(t testing.TB) *redistest.Server { return redistest.Real(t) }, open)
}

// RunOn is Run on the servers that start starts. A server may be a whole cluster.
func RunOn(t *testing.T, start func(testing.TB) *redistest.Server, open Open) {
	t.Helper()
	for name, check := range map[string]func(*site){
		"Life":                 life,
		"AnyConnectionBreaks":  anyConnectionBreaks,
		"ScriptFlush":          scriptFlush,
		"LargeAndBinary":       largeAndBinary,
		"Users":                users,
		"UsersOnBadNetwork":    usersOnBadNetwork,
		"Exclusion":            excludes,
		"WaitForOtherProcess":  waitsForOtherProcess,
		"HolderCutOff":         holderCutOff,
		"WithoutReply":         withoutReply,
		"RedisRestarts":        redisRestarts,
		"RedisIsSilent":        redisIsSilent,
		"RedisIsFull":          redisIsFull,
		"CloseLeavesTheClient": closeLeavesTheClient,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			check(&site{T: t, open: open, redis: start(t)})
		})
	}
}

// The keys of the session in most tests, and of the session after Renew.
const (
	theID  = "theID"
	newID  = "newID"
	record = "latchkey:{theID}"
	lock   = record + ".lock"
	moved  = "latchkey:{newID}"
)

// patient are options for tests in which time does not matter: nothing expires, even on a busy machine.
var patient = records.Options{Lease: time.Minute, Timeout: 10 * time.Second}

// hasty are options for tests in which Redis stops replying. At first it replies, even on a busy machine.
var hasty = records.Options{Lease: time.Minute, Timeout: 3 * time.Second}

// A site is a Redis, and the processes that use it.
type site struct {
	*testing.T
	open  Open
	redis *redistest.Server
}

// process returns the store of a process.
func (s *site) process(o records.Options) *records.Engine {
	s.Helper()
	return s.processAt(s.redis.Addr, o)
}

// tapped returns the store of a process whose commands go through a proxy.
func (s *site) tapped(o records.Options) (*records.Engine, *redistest.Proxy) {
	s.Helper()
	p := redistest.NewProxy(s.T, s.redis)
	return s.processAt(p.Addr, o), p
}

func (s *site) processAt(address string, o records.Options) *records.Engine {
	s.Helper()
	st := records.New(s.open(s.T, address, o.Timeout), o)
	if err := st.Err(); err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() { _ = st.Close() })
	return st
}

// isStores reports whether a command comes from the store, not from the client itself.
func isStores(c redistest.Command) bool {
	return slices.ContainsFunc(c.Args, func(arg string) bool { return strings.HasPrefix(arg, "latchkey:{") })
}

// begins reports whether a command is the first one of a round trip. Commands that free a lock in the
// background do not count.
func begins(c redistest.Command) bool {
	return c.Name == "SET" && strings.HasSuffix(c.Args[0], ".lock") || strings.HasPrefix(c.Name, "EVAL") && c.Args[1] != "2"
}

// decides reports whether the reply to a command shows the result of its round trip.
func decides(c redistest.Command) bool {
	return c.Name == "MGET" || c.Name == "EVALSHA" || c.Name == "EVAL"
}

// next makes the next round trip of the store fail, once.
func next(p *redistest.Proxy, fault redistest.Fault) {
	done := false
	p.Inject(func(c redistest.Command) redistest.Fault {
		if done || !decides(c) {
			return redistest.Pass
		}
		done = true
		return fault
	})
}

func (s *site) create(st *records.Engine, data string) {
	s.Helper()
	if err := st.Create(s.Context(), theID, []byte(data), records.Terms{}); err != nil {
		s.Fatal(err)
	}
}

func (s *site) take(st *records.Engine) *records.Hold {
	s.Helper()
	h, _, err := st.Take(s.Context(), theID, records.Terms{LockWait: time.Minute})
	if err != nil {
		s.Fatal(err)
	}
	return h
}

func (s *site) save(h *records.Hold, data string) {
	s.Helper()
	if err := h.Save(s.Context(), []byte(data)); err != nil {
		s.Error(err)
	}
}

// wantData checks the stored data, in a process that did not store it.
func (s *site) wantData(want string) {
	s.Helper()
	r, err := s.process(patient).Load(s.Context(), theID, records.Terms{})
	if err != nil || string(r.Data) != want {
		s.Errorf("stored is %q, %v, want %q", r.Data, err, want)
	}
}

func (s *site) wantError(what string, err, want error) {
	s.Helper()
	if !errors.Is(err, want) {
		s.Errorf("%s: error %v, want %v", what, err, want)
	}
}

// wantFree checks that no lock is left, and that another process gets the session.
func (s *site) wantFree() {
	s.Helper()
	s.eventually("the lock is free", func() bool { return !s.redis.Exists(s, lock) })
	s.take(s.process(patient)).Release(s.Context())
}

func (s *site) eventually(what string, ok func() bool) {
	s.Helper()
	redistest.Eventually(s, what, ok)
}

func mustBe(err, want error) error {
	if !errors.Is(err, want) {
		return fmt.Errorf("error %w, want %w", err, want)
	}
	return nil
}

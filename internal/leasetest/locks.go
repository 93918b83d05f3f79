// Package leasetest has locks in memory, of which the tests of packages lease and locker make
// their fake algorithms.
package leasetest

import (
	"slices"
	"sync"
	"time"
)

// Locks go by the clock of the bubble, and know how an algorithm on them was called. The zero
// value is ready.
type Locks struct {
	mu    sync.Mutex // guards all below
	locks map[string]entry
	calls []Call
}

type entry struct {
	token string
	end   time.Time
}

// A Call is that of a method of an algorithm.
type Call struct {
	Method, Key, Token string
	D                  time.Duration
	At                 time.Time
}

// Record notes a call, and returns how many of its method there are now.
func (l *Locks) Record(method, key, token string, d time.Duration) int {
	l.mu.Lock()
	l.calls = append(l.calls, Call{method, key, token, d, time.Now()})
	l.mu.Unlock()
	return len(l.Made(method))
}

// Take makes token the holder of key for d, unless another is.
func (l *Locks) Take(key, token string, d time.Duration) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	free := l.holder(key) == "" || l.holder(key) == token
	if free {
		l.put(key, token, d)
	}
	return free
}

// Change makes the lease of token end d from now, if that has the lock, and returns who has.
func (l *Locks) Change(key, token string, d time.Duration) (holder string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if holder = l.holder(key); holder == token {
		l.put(key, token, d)
	}
	return holder
}

// Put makes somebody else the holder of key for d; not even a token can help it.
func (l *Locks) Put(key, token string, d time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.put(key, token, d)
}

func (l *Locks) put(key, token string, d time.Duration) {
	if l.locks == nil {
		l.locks = make(map[string]entry)
	}
	l.locks[key] = entry{token, time.Now().Add(d)}
}

// Holder returns the token in key, or "".
func (l *Locks) Holder(key string) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.holder(key)
}

func (l *Locks) holder(key string) string {
	if e := l.locks[key]; time.Now().Before(e.end) {
		return e.token
	}
	return ""
}

// Left returns for how long key is held.
func (l *Locks) Left(key string) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return time.Until(l.locks[key].end)
}

// Calls returns all calls so far.
func (l *Locks) Calls() []Call {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.calls)
}

// Made returns the calls of one method so far.
func (l *Locks) Made(method string) []Call {
	return slices.DeleteFunc(l.Calls(), func(c Call) bool { return c.Method != method })
}

// Package leasetest has locks in memory, from which the tests of packages lease and locker make fake
// algorithms.
package leasetest

import (
	"slices"
	"sync"
	"time"
)

// Locks use the clock of the bubble, and record the calls of an algorithm on them. The zero value is
// ready.
type Locks struct {
	mu    sync.Mutex // guards all below
	locks map[string]entry
	calls []Call
}

type entry struct {
	token string
	end   time.Time
}

// A Call is a call of a method of an algorithm.
type Call struct {
	Method, Key, Token string
	D                  time.Duration
	At                 time.Time
}

// Record records a call, and returns how many calls of its method there are so far.
func (l *Locks) Record(method, key, token string, d time.Duration) int {
	l.mu.Lock()
	l.calls = append(l.calls, Call{method, key, token, d, time.Now()})
	l.mu.Unlock()
	return len(l.Made(method))
}

// Take makes token the holder of key for d, unless another token holds it.
func (l *Locks) Take(key, token string, d time.Duration) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	free := l.holder(key) == "" || l.holder(key) == token
	if free {
		l.put(key, token, d)
	}
	return free
}

// Change makes the lease of token end d from now, if token has the lock, and returns the holder.
func (l *Locks) Change(key, token string, d time.Duration) (holder string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if holder = l.holder(key); holder == token {
		l.put(key, token, d)
	}
	return holder
}

// Put makes another token the holder of key for d, whether or not it is held.
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

// Left returns how much longer key is held.
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

package store

import (
	"bytes"
	"crypto/sha1"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/gomodule/redigo/redis"
)

// A slowCommit holds back the reply to the first commit, which is done.
type slowCommit struct {
	done, letGo chan struct{}
	once        sync.Once
}

// slow makes d's store use one.
func slow(t *testing.T, d *desk) *slowCommit {
	c := &slowCommit{done: make(chan struct{}), letGo: make(chan struct{})}
	pool := d.proxy.Pool(t, 8)
	pool.Dial = func() (redis.Conn, error) {
		conn, err := net.Dial("tcp", d.proxy.Addr)
		if err != nil {
			return nil, err
		}
		return redis.NewConn(&slowConn{Conn: conn, commit: c}, 0, 0), nil
	}
	pool.DialContext = nil
	d.st = New(pool, d.st.options)
	d.st.alone = time.Hour
	return c
}

type slowConn struct {
	net.Conn
	commit  *slowCommit
	carries atomic.Bool // a commit
}

func (c *slowConn) Write(b []byte) (int, error) {
	if bytes.Contains(b, fmt.Appendf(nil, "%x", sha1.Sum([]byte(asSent(commitScript))))) {
		c.carries.Store(true)
	}
	return c.Conn.Write(b)
}

func (c *slowConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if c.carries.Load() {
		c.commit.once.Do(func() {
			close(c.commit.done)
			<-c.commit.letGo
		})
	}
	return n, err
}

// A hold is lost while the commit of the one before is under way. That one was in time, so
// it is stored and says so; and the lock, which the commit has given to the lost one, is
// free.
func TestAHoldIsLostWhileAnotherCommits(t *testing.T) {
	eachDesk(t, patient, func(t *testing.T, d *desk) {
		c := slow(t, d)
		first := take(t, d.st)
		waiting := guests(t, d.st, 1, Terms{})
		one := saving(t, first, "1")
		second := waiting[0].holds(t, "1")
		<-c.done
		second.lease.Lose(ErrLost)
		two := saving(t, second, "2")
		close(c.letGo)
		wantError(t, "the one that was lost", two.wait(), ErrLost)
		if err := one.wait(); err != nil {
			t.Errorf("the one that was in time: %v", err)
		}
		eventually(t, "the lock is free", func() bool { return !d.Exists(t, theLock) })
		wantData(t, d.site, "1")
	})
}

// The same where the commit has not reached Redis yet.
func TestAHoldIsLostWhileAnotherCommitTravels(t *testing.T) {
	eachDesk(t, patient, func(t *testing.T, d *desk) {
		first := take(t, d.st)
		waiting := guests(t, d.st, 1, Terms{})
		letGo := d.holdBack(t)
		before := d.count(commitScript)
		one := saving(t, first, "1")
		second := waiting[0].holds(t, "1")
		d.sent(t, commitScript, before+1)
		second.lease.Lose(ErrLost)
		two := saving(t, second, "2")
		letGo()
		wantError(t, "the one that was lost", two.wait(), ErrLost)
		if err := one.wait(); err != nil {
			t.Errorf("the one that was in time: %v", err)
		}
		eventually(t, "the lock is free", func() bool { return !d.Exists(t, theLock) })
		wantData(t, d.site, "1")
	})
}

// Whoever is told ErrLost alone can be sure that nothing was stored: here the commit that
// stores it was sent by another.
func TestLostMeansNotStored(t *testing.T) {
	eachDesk(t, patient, func(t *testing.T, d *desk) {
		c := slow(t, d)
		first := take(t, d.st)
		waiting := guests(t, d.st, 2, Terms{})
		shared := first.fence.(*tenure)
		one, version := ended(t, shared, first, "1")
		two := saving(t, waiting[0].holds(t, "1"), "2") // sends both
		third := waiting[1].holds(t, "2")
		<-c.done
		third.lease.Lose(ErrLost)
		three := saving(t, third, "3")
		go func() {
			shared.mu.Lock()
			defer shared.mu.Unlock()
			shared.flush(t.Context(), version)
			if shared.stored >= version {
				one <- nil
			} else {
				one <- shared.err
			}
		}()
		close(c.letGo)
		if err := <-one; err != nil {
			t.Errorf("the first, which is stored: %v", err)
		}
		if err := two.wait(); err != nil {
			t.Errorf("the second: %v", err)
		}
		wantError(t, "the third", three.wait(), ErrLost)
		wantData(t, d.site, "2")
	})
}

// ended ends a hold with a version, as far as its goroutine gets before another one sends
// it.
func ended(t *testing.T, shared *tenure, h *Hold, data string) (outcome chan error, version int) {
	t.Helper()
	record := Record{Data: []byte(data), Created: h.Record.Created, name: h.stamp}
	shared.mu.Lock()
	defer shared.mu.Unlock()
	h.over = true
	shared.newest++
	shared.record, shared.size = record, int32(record.size())
	shared.write, shared.written = write{changed: true, record: record, ttl: h.terms.expiry(&h.Record, time.Now())}, shared.newest
	next, _, _ := h.lease.Stop(shared.others)
	if shared.lease = h.lease.HandOver(next, shared.others); shared.lease == nil {
		t.Fatal("nobody waits")
	}
	return make(chan error, 1), shared.newest
}

// Whoever deletes the record of a held session ends it, for the holder, who is told, and
// for those who come then.
func TestADeletedRecordFreesTheLock(t *testing.T) {
	t.Parallel()
	besideRecord(t, func(t *testing.T, s *site) {
		o := Options{Lease: 6 * time.Second}
		st := New(s.Pool(t, 4), o)
		create(t, st, "0")
		h := take(t, st)
		s.Do(t, "DEL", theRecord)
		<-h.lease.Lost()
		lost := time.Now()
		eventually(t, "the lock is free", func() bool { return !s.Exists(t, theLock) })
		if took := time.Since(lost); took > 2*time.Second { // two thirds of a lease were left
			t.Errorf("the lock was free %v after its holder was told", took)
		}
		wantError(t, "Save", h.Save(t.Context(), []byte("1")), ErrLost)
	})
}

// Where PTTL is not permitted, the time that a session has left is not known. It is not
// shortened all the same.
func TestTheWatchdogShortensNothing(t *testing.T) {
	t.Parallel()
	s := redistest.Real(t)
	s.Do(t, "ACL", append([]any{"SETUSER", "app"}, leastRights...)...)
	st := opened(t, "redis://app:pw@"+s.Addr, Options{Prefix: "app:", Lease: 300 * time.Millisecond, Timeout: patient.Timeout})
	create(t, st, "0")
	h := take(t, st)
	waitUntilExtended(t, s, "app:{"+theID+"}.lock")
	wantExpiry(t, s, "app:{"+theID+"}", DefaultTTL)
	h.Release(t.Context())
}

// A session does not end with its lifetime while it is held, whatever the lock.
func TestTheLifetimeEndsWhileItIsHeld(t *testing.T) {
	t.Parallel()
	eachFence(t, func(t *testing.T, s *site) {
		st := s.process(t)
		terms := Terms{TTL: 3 * time.Second, Lifetime: 3 * time.Second}
		if err := st.Create(t.Context(), theID, []byte("0"), terms); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2200 * time.Millisecond) // what is left is less than a third of the TTL
		h, err := st.Take(t.Context(), theID, terms)
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(1200 * time.Millisecond)
		if err := h.Save(t.Context(), []byte("1")); err != nil {
			t.Errorf("Save: %v", err)
		}
	})
}

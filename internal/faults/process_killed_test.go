package faults

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/demotest"
	"github.com/a2139e8d/latchkey/internal/faults/rig"
	"github.com/a2139e8d/latchkey/internal/redistest"
)

const killedPromise = "P7: the next request is served within the lease; the write is complete or absent"

// A process is killed while its take is under way to Redis. In every other round the take arrives there after the
// process has died.
func TestAppKilledAtLock(t *testing.T) {
	killedAt(t, "process killed, its take not yet in Redis", death{at: byGuest(isTake), by: redistest.HangCommand})
}

// A process is killed after Redis has executed its take, and before the reply arrives.
func TestAppKilledAtLoad(t *testing.T) {
	killedAt(t, "process killed, its take in Redis, without the reply", death{at: byGuest(isTake), by: redistest.Hang, locked: true})
}

// A process is killed when it has held the session for a while, and has extended its lease.
func TestAppKilledInHandler(t *testing.T) {
	killedAt(t, "process killed in the handler", death{at: byGuest(isExtend), nth: 2, locked: true, flags: []string{"-work", "1h"}})
}

// A process is killed after Redis has executed its commit, and before the reply arrives.
func TestAppKilledWithCommitSent(t *testing.T) {
	killedAt(t, "process killed, its commit in Redis, without the reply", death{at: byGuest(isCommit), by: redistest.Hang, written: true})
}

// A process is killed when it knows that its commit was executed and has sent the response. The response is lost.
func TestAppKilledWithCommitAnswered(t *testing.T) {
	killedAt(t, "process killed, its commit done, without the answer", death{at: byGuest(isCommit), answered: true})
}

// A death describes how a process dies.
type death struct {
	at    func(redistest.Command) bool // the command at which it dies
	nth   int                          // the number of that command, if not the first
	by    redistest.Fault              // what the network does with it
	flags []string                     // of the process

	locked   bool // the process dies while it has the lock
	written  bool // the process dies when the write is in Redis
	answered bool // the process dies when the response is under way, not before
}

// killedAt makes several processes die in this way, one after another. Each process has requests of visitors in
// all stages, and three of a guest.
func killedAt(t *testing.T, fault string, how death) {
	s := stage(t, fault, killedPromise, setting{logins: true})
	rounds := unlessShort(4, 2)
	var longest time.Duration
	shut := 0
	s.run(func(context.Context) {
		for round := range rounds {
			locked, waited := s.kill(how, round%2 == 1)
			longest = max(longest, waited)
			if locked {
				shut++
			}
		}
	})
	if shut == 0 && !how.written && !how.answered {
		t.Error("no process died while it had the lock")
	}
	s.seen = fmt.Sprintf("killed %d times, %d with the lock, the next request waited at most %v", rounds, shut, longest.Round(time.Millisecond))
}

// kill starts a process and makes it die. If late is set, commands that the network has held back arrive after
// its death. kill returns whether the guest's session is left locked, and how long the next request waits for it.
func (s *scene) kill(how death, late bool) (locked bool, waited time.Duration) {
	s.Helper()
	proxy := redistest.NewProxy(s.T, s.redis)
	doomed := s.add(proxy.URL, how.flags...)
	g := s.guest(doomed)
	lock := rig.RecordKey(s.T, g.cookie) + ".lock"
	eventually(s.T, s.longest, "visitors come to it", func() bool { return proxy.Requests() > 50 })

	caught := catch(proxy, how)
	end := &end{of: doomed, answered: make(chan string, 3)}
	var requests sync.WaitGroup
	for _, name := range []string{"a", "b", "c"} {
		one := s.guestWith(g.cookie)
		if how.answered {
			one.http = end.client(s.T, name)
		}
		requests.Go(func() { one.must("/set "+name+" in a process that dies", one.set(doomed, name), 0, "") })
	}
	var cmd redistest.Command
	select {
	case cmd = <-caught:
	case <-time.After(s.longest):
		s.Fatal("the guest's command did not come")
	}
	if how.locked {
		eventually(s.T, s.longest, "it has the lock", func() bool { return s.redis.Exists(s.T, lock) })
	}
	want := []string{}
	if how.written {
		want = namesIn(s.T, recordIn(cmd))
		eventually(s.T, s.longest, "the write is in Redis", func() bool { return slices.Equal(g.names(s.demos[0]), want) })
	}
	if !how.answered { // otherwise the client kills the process as it reads the response
		doomed.Kill()
	}
	requests.Wait()
	s.close(doomed)
	if how.answered {
		want = g.names(s.demos[0])
		happened(s.T, "an answer was on its way", len(end.answered), 1)
		for range len(end.answered) {
			if name := <-end.answered; !slices.Contains(want, name) {
				s.Errorf("%s was confirmed and is not stored; %q are", name, want)
			}
		}
	}
	if late {
		proxy.Release()
	}
	s.mustHaveLeases(doomed)
	locked = s.redis.Exists(s.T, lock)

	began := time.Now()
	g.mustSet(s.demos[0], "next")
	waited = within(s.T, "the next one", began, lease+3*time.Second)
	g.mustHave(s.demos[1], append(want, "next")...)
	return locked, waited
}

// namesIn returns the names in a record.
func namesIn(t *testing.T, record string) (names []string) {
	t.Helper()
	var stored struct {
		Data map[string]any `json:"d"`
	}
	if err := json.Unmarshal([]byte(record), &stored); err != nil {
		t.Errorf("a record is %q: %v", record, err)
	}
	for key := range stored.Data {
		if name, found := strings.CutPrefix(key, "param_"); found {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// catch makes the network apply the fault of a death to the guest's command, and sends that command on the
// channel that it returns.
func catch(proxy *redistest.Proxy, how death) <-chan redistest.Command {
	caught, n := make(chan redistest.Command, 1), 0
	proxy.Inject(func(cmd redistest.Command) redistest.Fault { // calls do not overlap
		if !how.at(cmd) {
			return redistest.Pass
		}
		if n++; n != max(how.nth, 1) {
			return redistest.Pass
		}
		caught <- cmd
		return how.by
	})
	return caught
}

// mustHaveLeases asserts that all locks of a dead process will expire.
func (s *scene) mustHaveLeases(of *demotest.Demo) {
	s.Helper()
	for _, key := range s.locks(of) {
		if left, _ := s.redis.Do(s.T, "PTTL", key).(int64); left == -1 || left > lease.Milliseconds() {
			s.Errorf("a lock of a dead process lasts for %d ms more", left)
		}
	}
}

// An end ends a process when its response is under way to a client.
type end struct {
	of       *demotest.Demo
	answered chan string // the names whose responses were under way
}

// client returns a client that kills the process when it receives a response, and drops the response.
func (e *end) client(t *testing.T, name string) *http.Client {
	c := client(t)
	c.Transport.(*http.Transport).DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := new(net.Dialer).DialContext(ctx, network, addr)
		return &lastConn{conn, e, name}, err
	}
	return c
}

type lastConn struct {
	net.Conn
	end  *end
	name string
}

func (c *lastConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if n > 0 {
		c.end.of.Kill()
		if strings.HasPrefix(string(b[:n]), "HTTP/1.1 200 ") {
			c.end.answered <- c.name
		}
		return 0, errors.New("the network is down")
	}
	return n, err
}

package faults

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/demotest"
	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/session"
	"github.com/gomodule/redigo/redis"
)

// A crowd are streams on plain connections, which cost a client less than those of package http.
type crowd struct {
	*testing.T
	reading sync.WaitGroup

	mu    sync.Mutex // guards all below
	conns []net.Conn
	ended map[string][]time.Time // by user
	cut   bool                   // the test ends the streams
}

// atOnce does something n times, some of them at once.
func atOnce(n int, do func(i int)) {
	var all sync.WaitGroup
	for k := range 32 {
		all.Go(func() {
			for i := k; i < n; i += 32 {
				do(i)
			}
		})
	}
	all.Wait()
}

// listen opens a stream of a user's session, and reads it until it ends.
func (c *crowd) listen(d *demotest.Demo, user, cookie string) {
	address := strings.TrimPrefix(d.URL, "http://")
	conn, err := net.Dial("tcp", address)
	if err != nil {
		c.Error(err)
		return
	}
	fmt.Fprintf(conn, "GET /stream HTTP/1.1\r\nHost: %s\r\nCookie: %s\r\n\r\n", address, cookie)
	lines := bufio.NewReaderSize(conn, 1024)
	for line := ""; line != "\r\n"; { // up to the body
		if line, err = lines.ReadString('\n'); err != nil || strings.HasPrefix(line, "HTTP/") && !strings.Contains(line, " 200 ") {
			c.Errorf("a stream begins with %q, %v", line, err)
			conn.Close()
			return
		}
	}
	c.mu.Lock()
	c.conns = append(c.conns, conn)
	c.mu.Unlock()
	c.reading.Go(func() {
		for {
			line, err := lines.ReadString('\n') // also the lengths of chunks
			at := time.Now()
			if err == nil && strings.TrimSpace(line) != session.ErrEnded.Error() {
				continue
			}
			c.mu.Lock()
			if err == nil {
				c.ended[user] = append(c.ended[user], at)
			} else if !c.cut {
				c.Errorf("a stream of %s ends: %v", user, err)
			}
			c.mu.Unlock()
			return
		}
	})
}

// close ends the streams that are left.
func (c *crowd) close() {
	c.mu.Lock()
	c.cut = true
	for _, conn := range c.conns {
		conn.Close()
	}
	c.mu.Unlock()
	c.reading.Wait()
}

func (c *crowd) endedOf(user string) []time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ended[user]
}

// Ten thousand streams are open in two processes, on real connections. One user has a thousand sessions, each
// with a stream in either process. EndAll of that user ends all of these streams, and no others. The table shows
// how long that took, and what the streams cost while nothing happens.
func TestTenThousandStreams(t *testing.T) {
	t.Parallel()
	// There are as many other users as this user has sessions. They have one session each, with four times as many
	// streams. Each stream is an open file of the test.
	sessions := min(unlessShort(1000, 200), mostFiles(t)/12)
	r := redistest.Real(t)
	row := noted(t, fmt.Sprintf("streams: %d in two processes, EndAll of %d sessions", 10*sessions, sessions), streamPromise)
	var demos []*demotest.Demo
	for range 2 {
		demos = append(demos, clusterApp.Start(t, "-client", "redigo", "-redis", r.Addr))
	}
	c := &crowd{T: t, ended: make(map[string][]time.Time)}
	defer c.close()
	g := &guest{T: t, http: client(t)}
	atOnce(2*sessions, func(i int) {
		user, streams := "ann", 1
		if i%2 == 1 {
			user, streams = fmt.Sprint("user", i), 4
		}
		got := g.ask(demos[i/2%2], http.MethodPost, "/login", url.Values{"user": {user}})
		if got.cookie == "" {
			t.Errorf("a login was answered with %+v", got)
			return
		}
		for range streams {
			for _, d := range demos {
				c.listen(d, user, got.cookie)
			}
		}
	})
	if t.Failed() {
		return
	}
	pause(t.Context(), 2*time.Second) // so that all are watched
	const quiet = 4
	redisBefore, before := redisCPU(t, r), processCPU(t, demos...)
	pause(t.Context(), quiet*time.Second)
	redisUsed, used := redisCPU(t, r)-redisBefore, processCPU(t, demos...)-before

	called := time.Now()
	got := g.ask(demos[0], http.MethodPost, "/end-all", url.Values{"user": {"ann"}})
	returned := time.Now()
	if got.text != fmt.Sprint(sessions) {
		t.Errorf("EndAll: %d %q", got.status, got.text)
	}
	eventually(t, 20*time.Second, "all streams of the user have ended", func() bool { return len(c.endedOf("ann")) == 2*sessions })
	pause(t.Context(), 2*time.Second) // enough for others to end, too
	var slowest time.Duration
	for _, at := range c.endedOf("ann") {
		if slowest = max(slowest, at.Sub(returned)); at.Before(called) {
			t.Errorf("a stream ended %v before EndAll was called", called.Sub(at))
		}
	}
	if len(c.ended) != 1 {
		t.Errorf("streams of %d users have ended", len(c.ended))
	}
	within(t, "the end of all streams", time.Now().Add(-slowest), 5*time.Second) // generous: see audience.judge
	row.seen = fmt.Sprintf("EndAll took %v, the last stream ended %v later; while all is quiet, a second takes Redis %v, and both processes %v",
		returned.Sub(called).Round(time.Millisecond), slowest.Round(time.Millisecond),
		(redisUsed / quiet).Round(time.Millisecond), (used / quiet).Round(time.Millisecond))
	t.Log(row.seen)
}

// mostFiles returns how many files this process may have open.
func mostFiles(t *testing.T) int {
	t.Helper()
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	return int(min(limit.Cur, 1<<20))
}

// redisCPU returns the time that a server has computed.
func redisCPU(t *testing.T, r *redistest.Server) (sum time.Duration) {
	t.Helper()
	text, err := redis.String(r.Do(t, "INFO", "cpu"), nil)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(text) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		if seconds, err := strconv.ParseFloat(value, 64); err == nil && (name == "used_cpu_user" || name == "used_cpu_sys") {
			sum += time.Duration(seconds * float64(time.Second))
		}
	}
	return sum
}

// processCPU returns the time that processes have computed. It needs Linux.
func processCPU(t *testing.T, all ...*demotest.Demo) (sum time.Duration) {
	t.Helper()
	for _, d := range all {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", d.PID()))
		if err != nil {
			t.Fatal(err)
		}
		_, rest, _ := strings.Cut(string(stat), ") ") // the name of the program may contain blanks
		for _, field := range strings.Fields(rest)[11:13] {
			ticks, err := strconv.Atoi(field)
			if err != nil {
				t.Fatal(err)
			}
			sum += time.Duration(ticks) * 10 * time.Millisecond
		}
	}
	return sum
}

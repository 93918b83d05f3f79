package main

import (
	"context"
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/records"
	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/store"
	"github.com/a2139e8d/latchkey/store/rueidisstore"
	"github.com/redis/rueidis"
)

// A topReport is what top prints with --json.
type topReport struct {
	At       time.Time
	Looks    int
	Sessions []busy
	Total    int `json:"total_sessions"`
	Away     []away
}

func (r topReport) of(id string) *busy {
	for i := range r.Sessions {
		if r.Sessions[i].Session == id {
			return &r.Sessions[i]
		}
	}
	return &busy{}
}

// until reads reports until one is as expected.
func (r running) until(t *testing.T, what string, ok func(r topReport) bool) (report topReport) {
	t.Helper()
	redistest.Eventually(t, what, func() bool {
		line, err := r.stdout.ReadString('\n')
		if err == nil {
			report = topReport{}
			err = json.Unmarshal([]byte(line), &report)
		}
		if err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		return ok(report)
	})
	return report
}

// top shows which sessions were held, by whom, and how many processes wait.
func TestTop(t *testing.T) {
	s, st := withRedis(t)
	begin(t, st, first, "{}")
	begin(t, st, second, "{}")
	events := hold(t, st, second, "GET /events")
	h := hold(t, st, first, "POST /order")
	waiting, cancel := context.WithCancel(t.Context())
	defer cancel()
	taken := make(chan *records.Hold, 1)
	go func() {
		h, _, err := records.Of(opened(t, s.URL, store.Options{Timeout: 20 * time.Second})).Take(waiting, first, records.Terms{Label: "POST /next", LockWait: time.Minute})
		if err != nil {
			t.Error(err)
		}
		taken <- h
	}()

	c := start(t, s.URL, "top", "--json")
	report := c.until(t, "a process waits", func(r topReport) bool { return r.of(first).Waiting == 1 })
	near(t, "at", report.At, time.Now())
	a, b := report.Sessions[0], report.Sessions[1]
	if a.Session != first || a.State != "held" || a.Busy != 1 || a.Request != "POST /order" || !strings.Contains(a.Process, "/") || len(report.Sessions) != 2 {
		t.Errorf("%+v", report)
	}
	near(t, "since", *a.Since, time.Now())
	if b.Session != second || b.State != "held" || b.Busy != 1 || b.Waiting != 0 || b.Lease <= 0 {
		t.Errorf("%+v", b)
	}
	h.Release(t.Context())
	next := <-taken
	c.until(t, "it is the next one's", func(r topReport) bool { return r.of(first).Request == "POST /next" && r.of(first).Waiting == 0 })
	next.Release(t.Context())
	report = c.until(t, "it is free", func(r topReport) bool { return r.of(first).State == "free" })
	if a := report.Sessions[1]; a.Session != first || a.Busy >= 1 || a.Busy < 0.1 || a.Request != "POST /next" {
		t.Errorf("the busiest is not the first: %+v", report)
	}
	events.Release(t.Context())
	c.until(t, "all are free", func(r topReport) bool { return r.of(second).State == "free" })
	s.Do(t, "CONFIG", "RESETSTAT")
	c.until(t, "they are looked up by their keys, and not only by SCAN", func(topReport) bool {
		return strings.Contains(string(s.Do(t, "INFO", "commandstats").([]byte)), "cmdstat_getrange:")
	})
	if said := c.end(t, os.Interrupt); said != "" || c.ProcessState.ExitCode() != exitOK {
		t.Errorf("exit %d, %q", c.ProcessState.ExitCode(), said)
	}
}

// In a file each look is a table without codes of terminals. --count ends after so many looks.
func TestTopInAFile(t *testing.T) {
	s, st := withRedis(t)
	begin(t, st, first, "{}")
	begin(t, st, second, "{}")
	hold(t, st, first, "POST /order")
	s.Do(t, "SET", "latchkey:{"+second+"}.lock", "ABCDEFGHIJKLMNOP 1700000000000 web\x1b[2J/7 GET /\x1b[2J")
	text := must(t, s.URL, "top", "--count", "2")
	looks := strings.Split(text, "\n\n")
	if len(looks) != 3 || looks[2] != "" || strings.Contains(text, "\x1b") {
		t.Fatalf("%q", text)
	}
	contains(t, looks[0], "UTC  2 held, 0 other processes waiting; 1 look\nSESSION ", "BUSY", "PROCESSES WAITING", "HELD FOR", "PROCESS", "REQUEST",
		first, " 100 % ", " POST /order", `web\ufffd[2J/7`, `GET /\ufffd[2J`)
	contains(t, looks[1], "; 2 looks in ")
	if limited := decoded[topReport](t, s.URL, "top", "--count", "1", "--limit", "1"); len(limited.Sessions) != 1 || limited.Total != 2 {
		t.Errorf("%+v", limited)
	}
	if limited := must(t, s.URL, "top", "--count", "1", "--limit", "1"); !strings.HasSuffix(limited, "\n2 sessions were held; --limit 0 shows all\n\n") {
		t.Errorf("%q", limited)
	}
	if all := must(t, s.URL, "top", "--count", "1", "--limit", "2"); strings.Contains(all, "--limit 0") {
		t.Errorf("%q", all)
	}
	if none := must(t, s.URL, "top", "--count", "1", "--prefix", "none:"); !strings.HasSuffix(none, "UTC  0 held, 0 other processes waiting; 1 look\nno session with the prefix \"none:\" is held\n\n") {
		t.Errorf("%q", none)
	}
}

// On a terminal top repaints the screen in place, as much as fits, also when the size changes.
func TestTopOnATerminal(t *testing.T) {
	s, st := withRedis(t)
	const n = 20
	var holds []*records.Hold
	for i := range n {
		begin(t, st, id(i), "{}")
		holds = append(holds, hold(t, st, id(i), "POST /order"))
	}
	c := onTerminal(t, 8, 160, calling(t, s.URL, "top"))
	c.shows("20 held")
	c.shows("15 more lines")
	if all := c.lines(); len(all) != 8 || !strings.HasPrefix(all[1], "SESSION ") || !strings.HasPrefix(all[2], "0000") {
		t.Errorf("%q", all)
	}
	c.resize(8, 60) // too narrow for a table: rows are continued in a second line
	c.shows("    PROCESS")
	c.resize(40, 160)
	c.shows("SESSION ", "PROCESSES WAITING", "HELD FOR") // the next look has room for each title in one line
	c.shows(id(n-1), "100 %", "POST /order")
	if all := c.lines(); len(all) != n+2 {
		t.Errorf("%q", all)
	}
	holds[3].Release(t.Context())
	c.shows(id(3), " free ", "POST /order")
	c.shows("19 held")
	if last := c.lines()[n+1]; !strings.HasPrefix(last, id(3)) {
		t.Errorf("the last line is %q", last)
	}
	if _, err := c.master.WriteString("xq"); err != nil {
		t.Fatal(err)
	}
	c.ends()
}

// However top and watch end, the terminal is as it was.
func TestTheTerminalIsRestored(t *testing.T) {
	s, _ := withRedis(t)
	for how, end := range map[string]func(c *terminal) error{
		"q":       func(c *terminal) error { _, err := c.master.WriteString("q"); return err },
		"Ctrl-C":  func(c *terminal) error { _, err := c.master.WriteString("\x03"); return err },
		"Ctrl-\\": func(c *terminal) error { _, err := c.master.WriteString("\x1c"); return err },
		"SIGHUP":  func(c *terminal) error { return c.Process.Signal(syscall.SIGHUP) },
		"SIGQUIT": func(c *terminal) error { return c.Process.Signal(syscall.SIGQUIT) },
		"SIGINT":  func(c *terminal) error { return c.Process.Signal(os.Interrupt) },
		"SIGTERM": func(c *terminal) error { return c.Process.Signal(syscall.SIGTERM) },
	} {
		for _, command := range []string{"top", "watch"} {
			t.Run(command+" "+how, func(t *testing.T) {
				t.Parallel()
				c := onTerminal(t, 24, 80, calling(t, s.URL, command))
				c.shows("0 held")
				if err := end(c); err != nil {
					t.Fatal(err)
				}
				c.ends()
				if left := c.lines(); len(left) > 0 {
					t.Errorf("it leaves %q", left)
				}
			})
		}
	}
	t.Run("dumb", func(t *testing.T) { // a terminal without codes is like a file
		t.Parallel()
		command := calling(t, s.URL, "top", "--count", "2")
		command.Env = append(command.Env, "TERM=dumb")
		c := onTerminal(t, 24, 80, command)
		c.shows("1 look")
		c.shows("2 looks")
		c.ends()
	})
	t.Run("count", func(t *testing.T) {
		t.Parallel()
		c := onTerminal(t, 24, 80, calling(t, s.URL, "top", "--count", "2"))
		c.shows("0 held", "1 look")
		c.ends()
		c.shows("0 held", "2 looks") // the last picture stays
	})
}

// While Redis is unavailable, the terminal shows what was seen last, and why it is not newer. The command can be ended.
func TestATerminalWhileRedisIsAway(t *testing.T) {
	t.Parallel()
	for _, command := range []string{"top", "watch"} {
		t.Run(command, func(t *testing.T) {
			s, _ := withRedis(t)
			c := onTerminal(t, 24, 80, calling(t, s.URL, command, "--timeout", "1s"))
			c.shows("0 held")
			s.Stop(t)
			c.shows("latchkey: ", "connection refused")
			c.shows("0 held")
			s.Restart(t)
			redistest.Eventually(t, "the note is gone", func() bool {
				return !slices.ContainsFunc(c.lines(), func(line string) bool { return strings.HasPrefix(line, "latchkey: ") })
			})
			s.Pause(t)
			defer s.Resume(t)
			c.shows("no reply within 1s")
			c.resize(30, 100)
			c.shows("no reply within 1s") // although nothing else has changed
			if _, err := c.master.WriteString("q"); err != nil {
				t.Fatal(err)
			}
			c.ends()
		})
	}
}

// A master of a cluster that is away is a row, and nothing is known of its sessions until it is back.
func TestTopOfACluster(t *testing.T) {
	t.Parallel()
	c := redistest.NewCluster(t, 3, 0, "--cluster-require-full-coverage", "no")
	url := "redis://" + c.Nodes[1].Addr
	st, err := rueidisstore.Open(rueidis.ClientOption{InitAddress: []string{c.Nodes[0].Addr}}, patient)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { st.Close() })
	var lost []string
	slots := c.SlotsOf(t, c.Nodes[0])
	const n = 20
	for i := range n {
		begin(t, st, id(i), "{}")
		hold(t, st, id(i), "POST /order")
		if slices.Contains(slots, c.Slot(t, "{"+id(i)+"}")) {
			lost = append(lost, id(i))
		}
	}
	watching := start(t, url, "top", "--json")
	watching.until(t, "all are held", func(r topReport) bool { return len(r.Sessions) == n && len(r.Away) == 0 })
	c.Nodes[0].Stop(t)
	report := watching.until(t, "a master is away", func(r topReport) bool { return len(r.Away) == 1 && r.Away[0].Why == "connection refused" })
	for _, b := range report.Sessions {
		want := "held"
		if slices.Contains(lost, b.Session) {
			want = "unknown"
		}
		if b.State != want || b.Busy != 1 {
			t.Errorf("want %s: %+v", want, b)
		}
	}
	r := call(t, url, "top", "--count", "1")
	contains(t, r.stdout, ", as far as is known; 1 look\n"+c.Nodes[0].Addr+"  away: connection refused\nSESSION ")
	if r.code != exitError || r.stderr != "" || len(lost) == 0 || len(report.Sessions) != n {
		t.Errorf("%+v", r)
	}
	onScreen := onTerminal(t, 24, 80, calling(t, url, "top", "--count", "1"))
	onScreen.shows(c.Nodes[0].Addr + "  away: connection refused")
	if _ = onScreen.Wait(); onScreen.ProcessState.ExitCode() != exitError {
		t.Errorf("exit %d on a terminal", onScreen.ProcessState.ExitCode())
	}
	c.Nodes[0].Restart(t)
	report = watching.until(t, "it is back", func(r topReport) bool { return len(r.Away) == 0 })
	if b := report.of(lost[0]); b.State != "free" { // it has lost its locks
		t.Errorf("%+v", b)
	}
	watching.end(t, os.Interrupt)
}

// The page has each field that top --json prints.
func TestThePageHasTheFieldsOfTop(t *testing.T) {
	s, st := withRedis(t)
	begin(t, st, first, "{}")
	hold(t, st, first, "POST /order")
	page, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(page), "\n## top\n")
	section, _, _ = strings.Cut(section, "\n## ")
	for _, field := range regexp.MustCompile(`"\w+":`).FindAllString(must(t, s.URL, "top", "--json", "--count", "1"), -1) {
		if !strings.Contains(section, field) {
			t.Errorf("the page does not have %s", field)
		}
	}
}

// After a failover the sessions are looked up on the new master.
func TestTopAfterAFailover(t *testing.T) {
	t.Parallel()
	s := redistest.Real(t)
	st := opened(t, s.URL, store.Options{})
	begin(t, st, first, "{}")
	begin(t, st, second, "{}")
	hold(t, st, first, "GET /events")
	held := hold(t, st, second, "POST /order")
	p, _ := purging(t, st, "--redis", s.URL)
	r := newRanking()
	for range 2 {
		if _, err := p.lookAt(r); err != nil {
			t.Fatal(err)
		}
		for _, b := range r.known {
			b.node = "the old master"
		}
		held.Release(t.Context())
	}
	for id, want := range map[string]string{first: "held", second: "free"} {
		if got := r.known[id].State; got != want {
			t.Errorf("%s is %s, want %s", id, got, want)
		}
	}
}

package main

import (
	"bufio"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
)

// watching starts watch, and returns its lines. It is ended by the test.
func watching(t *testing.T, url string, args ...string) (*exec.Cmd, *bufio.Reader) {
	t.Helper()
	c := calling(t, url, append([]string{"watch"}, args...)...)
	c.Stderr = os.Stderr
	out, err := c.StdoutPipe()
	if err == nil {
		err = c.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	return c, bufio.NewReader(out)
}

// watch shows every second who holds which session, until it is interrupted. That is a clean end.
func TestWatch(t *testing.T) {
	s, st := withRedis(t)
	begin(t, st, first, "{}")
	for _, signal := range []os.Signal{os.Interrupt, syscall.SIGTERM} {
		c, lines := watching(t, s.URL, "--json")
		h := hold(t, st, first, "POST /order")
		held, begun := 0, time.Now()
		for looks := 0; held < 2; looks++ {
			line, err := lines.ReadString('\n')
			var look struct {
				At    time.Time
				Locks []holder
			}
			if err == nil {
				err = json.Unmarshal([]byte(line), &look)
			}
			if err != nil || looks > 5 {
				t.Fatalf("look %d: %q, %v", looks, line, err)
			}
			near(t, "at", look.At, time.Now())
			if len(look.Locks) == 1 && look.Locks[0].Request == "POST /order" {
				held++
			}
		}
		if took := time.Since(begun); took < 900*time.Millisecond {
			t.Errorf("two looks in %v", took)
		}
		h.Release(t.Context())
		if err := c.Process.Signal(signal); err != nil {
			t.Fatal(err)
		}
		rest, _ := io.ReadAll(lines)
		if err := c.Wait(); err != nil || strings.Contains(string(rest), "\n{\n") {
			t.Errorf("after %v: %v, %q", signal, err, rest)
		}
	}
}

// While Redis is away, watch says so once and goes on, and it can be interrupted then, too.
func TestWatchWhileRedisIsAway(t *testing.T) {
	s, _ := withRedis(t)
	c := calling(t, s.URL, "watch", "--json")
	stdout, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	stderr, err := c.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	looks, errors := bufio.NewReader(stdout), bufio.NewReader(stderr)
	look := func(when string) {
		if line, err := looks.ReadString('\n'); err != nil || !strings.HasPrefix(line, `{"at":`) {
			t.Fatalf("%s: %q, %v", when, line, err)
		}
	}
	refused := func() {
		for {
			switch line, err := errors.ReadString('\n'); {
			case err != nil:
				t.Fatalf("it does not say that Redis refuses: %q, %v", line, err)
			case strings.Contains(line, "connection refused"): // a broken connection may come first
				return
			}
		}
	}
	look("at first")
	for range 2 {
		s.Stop(t)
		refused()
		s.Restart(t)
		look("afterwards")
	}
	s.Stop(t)
	refused()
	time.Sleep(2100 * time.Millisecond) // it has tried again
	if err := c.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if rest, _ := io.ReadAll(errors); len(rest) > 0 {
		t.Errorf("it says it again: %q", rest)
	}
	_, _ = io.Copy(io.Discard, looks)
	if err := c.Wait(); err != nil {
		t.Error(err)
	}
}

// An interrupted look is a clean end, too, although Redis has not answered.
func TestWatchInterruptedInALook(t *testing.T) {
	s, _ := withRedis(t)
	c, lines := watching(t, s.URL, "--json", "--timeout", "1m")
	if _, err := lines.ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	s.Pause(t)
	defer s.Resume(t)
	time.Sleep(1100 * time.Millisecond) // the next look has begun
	if err := c.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if err := c.Wait(); err != nil {
		t.Error(err)
	}
}

// For people each look is a table. Into a file it has no codes of terminals.
func TestWatchForPeople(t *testing.T) {
	s, st := withRedis(t)
	begin(t, st, first, "{}")
	hold(t, st, first, "POST /order")
	c, lines := watching(t, s.URL)
	var text string
	for range 4 {
		line, err := lines.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		text += line
	}
	if err := c.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if err := c.Wait(); err != nil {
		t.Error(err)
	}
	contains(t, text, "UTC  1 session held\n", "SESSION ", first, "POST /order")
	if strings.Contains(text, "\x1b") {
		t.Errorf("%q", text)
	}
}

// Whatever is interrupted, but watch, has failed, and says why in a word.
func TestInterrupted(t *testing.T) {
	s, _ := withRedis(t)
	s.Pause(t)
	defer s.Resume(t)
	c := calling(t, s.URL, "locks", "--timeout", "1m")
	var stderr strings.Builder
	c.Stderr = &stderr
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	time.Sleep(300 * time.Millisecond) // it waits for Redis by then, or it has not begun to
	if err := c.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	_ = c.Wait()
	if code := c.ProcessState.ExitCode(); code == exitOK || code == exitUsage || strings.Count(stderr.String(), "\n") > 1 {
		t.Errorf("exit %d, %q", code, stderr.String())
	}
}

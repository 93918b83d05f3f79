package main

import (
	"io"
	"os"
	"strings"
	"testing"

	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/creack/pty"
)

// On a terminal a bar shows the progress of the first look on stderr. It is gone before the first picture, and later looks
// have none.
func TestTheFirstLookShowsProgress(t *testing.T) {
	s, st := withRedis(t)
	guests(t, st, 200)
	for _, args := range [][]string{{"locks"}, {"top", "--count", "2"}, {"watch"}} {
		terminal, end, err := pty.Open()
		if err != nil {
			t.Fatal(err)
		}
		defer terminal.Close()
		c := calling(t, s.URL, args...)
		c.Stderr = end
		stdout, err := c.StdoutPipe()
		if err == nil {
			err = c.Start()
		}
		if err != nil {
			t.Fatal(err)
		}
		picture := make([]byte, 1000)
		if _, err := stdout.Read(picture); err != nil {
			t.Fatal(err)
		}
		if args[0] == "watch" {
			_ = c.Process.Signal(os.Interrupt)
		}
		_, _ = io.Copy(io.Discard, stdout)
		if err := c.Wait(); err != nil {
			t.Errorf("%q: %v", args, err)
		}
		end.Close()
		all, _ := io.ReadAll(terminal) // the error says that the other end is closed
		shown := string(all)
		contains(t, shown, "\r[", " of 200 keys")
		if !strings.HasSuffix(shown, "\r\x1b[K") || strings.Count(shown, "\x1b[K") != 1 {
			t.Errorf("%q: the bar is left, or comes again: %q", args, shown)
		}
	}
}

// On a narrow terminal the bar is cut: it deletes only the line on which it stands.
func TestTheProgressFits(t *testing.T) {
	s, st := withRedis(t)
	guests(t, st, 200)
	terminal, end, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer terminal.Close()
	if err := pty.Setsize(end, &pty.Winsize{Rows: 10, Cols: 30}); err != nil {
		t.Fatal(err)
	}
	c := calling(t, s.URL, "stats")
	c.Stderr = end
	if err := c.Run(); err != nil {
		t.Error(err)
	}
	end.Close()
	all, _ := io.ReadAll(terminal) // the error says that the other end is closed
	for bar := range strings.SplitSeq(string(all), "\r") {
		if n := len(strings.TrimSuffix(bar, "\x1b[K")); n > 29 {
			t.Errorf("the bar has %d columns of 30: %q", n, bar)
		}
	}
	contains(t, string(all), "[####")
}

// Without a total there is no bar, and the command works as in a pipe.
func TestTheFirstLookWithoutATotal(t *testing.T) {
	t.Parallel()
	s := redistest.Real(t, "--rename-command", "DBSIZE", "")
	terminal, end, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer terminal.Close()
	defer end.Close()
	c := calling(t, s.URL, "locks")
	c.Stderr = end
	if out, err := c.Output(); err != nil || !strings.Contains(string(out), "no session") {
		t.Errorf("%q, %v", out, err)
	}
}

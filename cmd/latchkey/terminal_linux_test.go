package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// terminal returns both ends of one.
func terminal(t testing.TB) (screen, program *os.File) {
	t.Helper()
	screen, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { screen.Close() })
	n, err := unix.IoctlGetInt(int(screen.Fd()), unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(int(screen.Fd()), unix.TIOCSPTLCK, 0)
	}
	if err != nil {
		t.Fatal(err)
	}
	program, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { program.Close() })
	return screen, program
}

// On a terminal stats shows how far it is, and deletes that at the end. What it prints goes
// elsewhere, and is the same.
func TestProgressOnATerminal(t *testing.T) {
	s, st := withRedis(t)
	for i := range 2000 {
		begin(t, st, id(i), "{}")
	}
	screen, stderr := terminal(t)
	c := calling(t, s.URL, "stats")
	var stdout strings.Builder
	c.Stdout, c.Stderr = &stdout, stderr
	if err := c.Run(); err != nil {
		t.Fatal(err)
	}
	stderr.Close()
	var shown strings.Builder
	_, _ = io.Copy(&shown, screen) // fails at the end, as there is nobody on the other side
	contains(t, shown.String(), "\r[", " of 2,000 keys  ", "\r\x1b[K")
	contains(t, stdout.String(), "2,000")
	if strings.ContainsAny(stdout.String(), "\r\x1b") {
		t.Errorf("stdout: %q", stdout.String())
	}
}

// On a terminal each look of watch takes the place of the one before.
func TestWatchOnATerminal(t *testing.T) {
	s, _ := withRedis(t)
	screen, stdout := terminal(t)
	c := calling(t, s.URL, "watch")
	c.Stdout = stdout
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	text := make([]byte, 100)
	n, err := io.ReadAtLeast(screen, text, 40)
	if err != nil {
		t.Fatal(err)
	}
	contains(t, string(text[:n]), clearScreen+time.Now().UTC().Format("2006-"), "  0 sessions held")
	_ = c.Process.Signal(os.Interrupt)
	if err := c.Wait(); err != nil {
		t.Error(err)
	}
}

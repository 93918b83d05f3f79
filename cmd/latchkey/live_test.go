package main

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/creack/pty"
)

// A hook is an output that calls a function with what is written.
type hook func(text string)

func (h hook) Write(b []byte) (int, error) {
	h(string(b))
	return len(b), nil
}

// topInProcess runs top, so that the outputs can act between two looks.
func topInProcess(t *testing.T, url, count string, stdout, stderr hook) (code int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // otherwise it might not end
	defer cancel()
	getenv := func(name string) string { return map[string]string{redisVariable: url}[name] }
	return run(ctx, []string{"top", "--json", "--count", count, "--timeout", "20s"}, getenv, nil, stdout, stderr)
}

// stopsAfterOne notes looks, and stops Redis after the first.
func stopsAfterOne(t *testing.T, s *redistest.Server, looks *[]string) hook {
	return func(text string) {
		if *looks = append(*looks, text); len(*looks) == 1 {
			s.Stop(t)
		}
	}
}

// Failed looks count, so top ends although Redis stays away. The error is printed once, and the status is 1.
func TestTheLastLooksFail(t *testing.T) {
	s, _ := withRedis(t)
	var looks, said []string
	stdout := stopsAfterOne(t, s, &looks)
	stderr := hook(func(text string) { said = append(said, text) })
	code := topInProcess(t, s.URL, "4", stdout, stderr)
	all := strings.Join(said, "")
	if code != exitError || len(looks) != 1 || strings.Count(all, "connection refused\n") != 1 || !strings.HasSuffix(all, "connection refused\n") {
		t.Errorf("exit %d after %q, and it says %q", code, looks, said)
	}
}

// A look that fails is no failure of the command if the last look succeeds.
func TestALookFails(t *testing.T) {
	s, _ := withRedis(t)
	var looks, said []string
	stdout := stopsAfterOne(t, s, &looks)
	stderr := hook(func(text string) {
		if said = append(said, text); strings.Contains(text, "connection refused") {
			s.Restart(t)
		}
	})
	code := topInProcess(t, s.URL, "6", stdout, stderr)
	if code != exitOK || len(looks) < 2 || len(looks) > 5 {
		t.Errorf("exit %d after %d looks, and it says %q", code, len(looks), said)
	}
}

// On a terminal failed looks count, too.
func TestTheLastLooksFailOnATerminal(t *testing.T) {
	t.Parallel()
	master, tty, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer master.Close()
	defer tty.Close()
	go func() { _, _ = io.Copy(io.Discard, master) }()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	away, looks := errors.New("away"), 1
	s := &screen{job: &job{ctx: ctx}, terminal: tty}
	complete, err := s.live(3, picture{text: "first"}, func() (picture, error) {
		if looks++; looks > 3 {
			cancel() // it would not end
		}
		return picture{}, away
	})
	if !complete || err != away || looks != 3 || s.shown != "first" || !strings.Contains(s.painted, "latchkey: away; the above is older") {
		t.Errorf("%v, %v after %d looks, and the screen shows %q", complete, err, looks, s.painted)
	}
}

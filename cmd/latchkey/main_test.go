package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/records"
	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/store"
)

// program is the path of the command, which is built once. The tests run it as operators do.
var program string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "latchkey")
	if err == nil {
		program = filepath.Join(dir, "latchkey")
		var out []byte
		if out, err = exec.Command("go", "build", "-o", program, ".").CombinedOutput(); err != nil {
			err = fmt.Errorf("%w: %s", err, out)
		}
	}
	flag.Parse()
	_ = flag.Set("test.parallel", "4") // most wait for other programs
	code := 1
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
	} else {
		code = m.Run()
	}
	os.RemoveAll(dir)
	os.Exit(code)
}

// Tests on a real Redis are skipped if there is none. That must not go unnoticed, so this one test fails.
func TestARealRedisIsInstalled(t *testing.T) {
	if err := redistest.Missing(); err != nil {
		t.Fatal(err)
	}
}

// A result has the output of one run of the command.
type result struct {
	stdout, stderr string
	code           int
}

// calling returns the command with url in LATCHKEY_REDIS.
func calling(t testing.TB, url string, args ...string) *exec.Cmd {
	c := exec.CommandContext(t.Context(), program, args...)
	c.Env = append(os.Environ(), redisVariable+"="+url, keysVariable+"=")
	return c
}

// call runs the command. An error must be one line, and there must be no panic.
func call(t testing.TB, url string, args ...string) result {
	t.Helper()
	return finish(t, calling(t, url, args...))
}

func finish(t testing.TB, c *exec.Cmd) result {
	t.Helper()
	var stdout, stderr bytes.Buffer
	c.Stdout, c.Stderr = &stdout, &stderr
	err := c.Run()
	if _, exited := err.(*exec.ExitError); err != nil && !exited {
		t.Fatal(err)
	}
	r := result{stdout.String(), stderr.String(), c.ProcessState.ExitCode()}
	if lines := strings.Count(r.stderr, "\n"); lines > 1 || strings.Contains(r.stderr, "goroutine") {
		t.Errorf("%q has %d lines on stderr:\n%s", c.Args[1:], lines, r.stderr)
	}
	return r
}

// must is call for a command that must succeed, and returns its output.
func must(t testing.TB, url string, args ...string) string {
	t.Helper()
	r := call(t, url, args...)
	if r.code != exitOK || r.stderr != "" {
		t.Fatalf("%q: exit %d, %s", args, r.code, r.stderr)
	}
	return r.stdout
}

// decoded is must with --json.
func decoded[T any](t testing.TB, url string, args ...string) (v T) {
	t.Helper()
	text := must(t, url, append(args, "--json")...)
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatalf("%q: %v: %s", args, err, text)
	}
	return v
}

// fails checks that the output is one line on stderr that contains the words.
func fails(t testing.TB, r result, code int, words ...string) {
	t.Helper()
	if r.code != code || r.stdout != "" || !strings.HasPrefix(r.stderr, "latchkey: ") || strings.Count(r.stderr, "\n") != 1 {
		t.Errorf("exit %d, want %d; stdout %q, stderr %q", r.code, code, r.stdout, r.stderr)
	}
	contains(t, r.stderr, words...)
}

func contains(t testing.TB, text string, words ...string) {
	t.Helper()
	for _, word := range words {
		if !strings.Contains(text, word) {
			t.Errorf("there is no %q in %q", word, text)
		}
	}
}

// Times as the command writes them: on a busy machine some seconds after or before what they should be.
const (
	tenMinutesAgo    = `\b10m(\d+s)? ago\b`
	twentyMinutesAgo = `\b20m(\d+s)? ago\b`
	inTenMinutes     = `\bin (10m|9m\d+s)`
	inTwentyMinutes  = `\bin (20m|19m\d+s)`
	inThirtyMinutes  = `\bin (30m|29m\d+s)`
)

// says is contains for regular expressions.
func says(t testing.TB, text string, patterns ...string) {
	t.Helper()
	for _, p := range patterns {
		if !regexp.MustCompile(p).MatchString(text) {
			t.Errorf("%q does not match %q", text, p)
		}
	}
}

// Sessions that tests begin: of guests, and of users.
const (
	first  = "AAAAAAAAAAAAAAAAAAAAAA"
	second = "-AAAAAAAAAAAAAAAAAAAAQ"
)

// patient are options of a store that waits for a busy machine.
var patient = store.Options{Timeout: 20 * time.Second}

// opened returns the store of a program that has sessions. By default it is patient.
func opened(t testing.TB, url string, o store.Options) *store.Store {
	t.Helper()
	o.Timeout = cmp.Or(o.Timeout, patient.Timeout)
	st, err := store.Open(url, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { st.Close() })
	return st
}

// begin stores a session of a guest.
func begin(t testing.TB, st *store.Store, id, data string) {
	t.Helper()
	if err := records.Of(st).Create(t.Context(), id, []byte(data), records.Terms{}); err != nil {
		t.Fatal(err)
	}
}

// hold takes a session until the end of the test.
func hold(t testing.TB, st *store.Store, id, label string) *records.Hold {
	t.Helper()
	h, _, err := records.Of(st).Take(t.Context(), id, records.Terms{Label: label, LockWait: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { h.Release(context.Background()) })
	return h
}

// file returns the path of a file with that content.
func file(t testing.TB, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// withRedis begins each test of a command.
func withRedis(t *testing.T) (*redistest.Server, *store.Store) {
	t.Parallel()
	s := redistest.Real(t)
	return s, opened(t, s.URL, store.Options{Timeout: 20 * time.Second})
}

// get returns the value of a key, or "" if there is none.
func get(t testing.TB, s *redistest.Server, key string) string {
	t.Helper()
	value, _ := s.Get(t, key)
	return value
}

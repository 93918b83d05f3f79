package main

import (
	"context"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/cmd/bench/app"
)

// TestMain lets the test binary be a process of the app, as the program is.
func TestMain(m *testing.M) {
	app.Run()
	_ = os.Setenv("GORACE", "atexit_sleep_ms=0") // otherwise each process of the app takes a second to end
	os.Exit(m.Run())
}

// Tests on a real Redis are skipped if there is none. That must not go unnoticed, so this one test fails.
func TestARealRedisIsInstalled(t *testing.T) {
	if _, err := findRedis(); err != nil {
		t.Fatal(err)
	}
}

// started returns a Redis that ends with the test. If none is installed the test is skipped.
func started(t *testing.T) *redisServer {
	t.Helper()
	if _, err := findRedis(); err != nil {
		t.Skip(err)
	}
	server, err := startRedis(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.close)
	return server
}

// TestRun measures a little of each kind of workload.
func TestRun(t *testing.T) {
	started(t) // or it is skipped
	file, picture := filepath.Join(t.TempDir(), "results.md"), filepath.Join(t.TempDir(), "hot.svg")
	args := "-workload hot,spread,page,100B,far,lock -peer latchkey,scs,floor -processes 1,2 -rounds 1 -time 20ms -markdown " + file + " -chart " + picture
	var out strings.Builder
	if err := run(t.Context(), strings.Fields(args), &out, io.Discard); err != nil {
		t.Fatal(err)
	}
	report := read(t, file)
	for _, want := range []string{
		"### hot, 1 process\n", "### hot, 2 processes\n", "### page, 2 processes\n", "### far, 1 process\n", "; a round trip to Redis takes 1ms longer.\n", "### lock, 2 processes\n",
		"### 100B, 1 process\n", "## When Redis is full\n", "| no sessions: the floor | 1 | – |",
		"| hot, 1 process: kept, % | **100** | ≥ 100 | yes |",
		"| hot, 2 processes: kept, % | **100** | ≥ 100 | yes |",
	} {
		if !strings.Contains(report, want) {
			t.Errorf("%q is not in the report:\n%s", want, report)
		}
	}
	if !strings.Contains(out.String(), "### far, 2 processes\n") {
		t.Errorf("the tables are not printed:\n%s", out.String())
	}
	drawn := read(t, picture)
	if err := xml.Unmarshal([]byte(drawn), new(struct{})); err != nil {
		t.Errorf("the chart is not valid: %v", err)
	}
	for _, want := range []string{"Latchkey", "scs + goredisstore", "1 process", "2 processes"} {
		if !strings.Contains(drawn, ">"+want+"<") {
			t.Errorf("%q is not in the chart:\n%s", want, drawn)
		}
	}
}

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestAgainst uses this tree as the other tree, too.
func TestAgainst(t *testing.T) {
	started(t) // or it is skipped
	var out strings.Builder
	err := run(t.Context(), strings.Fields("-against ../.. -workload read,lone -processes 1 -rounds 2 -time 20ms"), &out, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"| Latchkey | 2 |", "| the other tree | 2 |", "| read, 1 process | ", "| lone, 1 process: median ÷ the other tree's | "} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is not in the output:\n%s", want, out.String())
		}
	}
	err = run(t.Context(), []string{"-against", "nowhere"}, io.Discard, io.Discard)
	if err == nil || !strings.Contains(err.Error(), "nowhere") {
		t.Errorf("a tree that does not exist: the error is %v", err)
	}
}

// A file that cannot be written is told before the measurement.
func TestRunCannotWrite(t *testing.T) {
	file := filepath.Join(t.TempDir(), "missing", "file")
	for _, name := range []string{"-markdown", "-chart"} {
		var out strings.Builder
		err := run(t.Context(), []string{"-workload", "hot", "-rounds", "1", name, file}, io.Discard, &out)
		if !errors.Is(err, os.ErrNotExist) || out.Len() > 0 {
			t.Errorf("%s: the error is %v, and the output is %q", name, err, out.String())
		}
	}
}

func TestRunIsInterrupted(t *testing.T) {
	started(t) // or it is skipped
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	began := time.Now()
	err := run(ctx, strings.Fields("-workload spread -peer latchkey,scs -processes 2 -time 1m"), io.Discard, io.Discard)
	if !errors.Is(err, context.DeadlineExceeded) || time.Since(began) > 50*time.Second {
		t.Errorf("the run ended after %v with the error %v", time.Since(began), err)
	}
}

package main

import (
	"context"
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
	_ = os.Setenv("GORACE", "atexit_sleep_ms=0") // or else each process of the app takes a second to end
	os.Exit(m.Run())
}

// TestRun measures a little of everything that is measured in another way.
func TestRun(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "results.md")
	args := "-workload hot,page,read,lock -peer latchkey,scs -processes 1,2 -rounds 1 -time 20ms -plots " + dir + " -markdown " + file
	var out strings.Builder
	if err := run(t.Context(), strings.Fields(args), &out, io.Discard); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"### hot, 1 process\n", "### hot, 2 processes\n", "### page, 2 processes\n", "### read, 1 process\n", "### lock, 2 processes\n",
		"| hot, 1 process: kept, % | **100** | ≥ 100 | yes |",
		"| hot, 2 processes: kept, % | **100** | ≥ 100 | yes |",
	} {
		if !strings.Contains(string(text), want) {
			t.Errorf("%q is not in the report:\n%s", want, text)
		}
	}
	if !strings.Contains(out.String(), "### read, 2 processes\n") {
		t.Errorf("the tables are not printed:\n%s", out.String())
	}
}

func TestRunIsInterrupted(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	began := time.Now()
	err := run(ctx, strings.Fields("-workload spread -peer latchkey,scs -processes 2 -time 1m"), io.Discard, io.Discard)
	if !errors.Is(err, context.DeadlineExceeded) || time.Since(began) > 20*time.Second {
		t.Errorf("it ended after %v with the error %v", time.Since(began), err)
	}
}

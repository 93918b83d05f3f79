package middleware_test

import (
	"bytes"
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/trace"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/middleware"
	"github.com/a2139e8d/latchkey/store"
)

// An execution trace shows each request, and each Update, as a task, with its wait and its commit as regions, its hold
// as a task within, and the session's ID and the request's label.
func TestExecutionTrace(t *testing.T) {
	r := redistest.Memory(t)
	s, v := begun(t, r, middleware.Options{}, app())
	id := v.get(s.URL + "/id").body
	path := filepath.Join(t.TempDir(), "trace.out")
	f, err := os.Create(path)
	must(t, err)
	must(t, trace.Start(f))
	v.post(s.URL+"/add").want(t, 200, "2")
	must(t, s.sessions.Update(t.Context(), id, adding))
	s.Close() // so that the request is over
	trace.Stop()
	must(t, f.Close())
	out, err := exec.Command("go", "tool", "trace", "-d=parsed", path).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	var got []string
	for line := range bytes.Lines(out) {
		text := string(line)
		for _, what := range []string{"TaskBegin", "TaskEnd", "RegionBegin", "RegionEnd", "Log"} {
			if strings.Contains(text, " "+what+" ") && strings.Contains(text, `"latchkey `) {
				_, name, _ := strings.Cut(text, `"latchkey `)
				name, _, _ = strings.Cut(name, `"`)
				got = append(got, what+" "+name)
			}
		}
		if strings.Contains(text, " Log ") && strings.Contains(text, id) {
			got = append(got, "session")
		}
		if strings.Contains(text, " Log ") && (strings.Contains(text, `"POST /add"`) || strings.Contains(text, `"Update"`)) {
			got = append(got, "label")
		}
	}
	want := []string{"TaskBegin request", "session", "RegionBegin wait", "RegionEnd wait", "TaskBegin hold",
		"RegionBegin commit", "RegionEnd commit", "TaskEnd hold", "label", "TaskEnd request"}
	want = slices.Concat(want, want) // the Update's
	if !slices.Equal(got, want) {
		t.Errorf("the trace has\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// While an execution trace is written, requests of Sessions without observers take notes. The observers of other
// Sessions on the same store are told of these requests' exchanges nevertheless.
func TestAnExecutionTraceKeepsNoEvents(t *testing.T) {
	r := redistest.Memory(t)
	var commits atomic.Int32
	counts := observerFunc(func(_ context.Context, e middleware.Event) {
		if x, ok := e.(*middleware.ExchangeEvent); ok && x.Holds > 0 && x.Status == "" {
			commits.Add(1)
		}
	})
	st := store.New(r.Pool(t, 4), steady)
	newSiteOn(t, st, middleware.Options{Observers: []middleware.Observer{counts}}, app())
	s := newSiteOn(t, st, middleware.Options{}, app())
	v := s.visitor(t)
	v.post(s.URL+"/add").want(t, 200, "2")
	redistest.Eventually(t, "a commit is told", func() bool { return commits.Load() == 1 })
	must(t, trace.Start(io.Discard))
	defer trace.Stop()
	v.post(s.URL+"/add").want(t, 200, "3")
	redistest.Eventually(t, "a commit is told while an execution trace is written", func() bool { return commits.Load() == 2 })
}

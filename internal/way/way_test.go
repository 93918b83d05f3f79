package way

import (
	"path"
	"testing"

	"github.com/a2139e8d/latchkey/internal/overlay"
	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/internal/way/trace"
)

// The maps of the way of one request are true: see the package's comment. With -v the test prints which functions
// each kind of request calls, and how many.
func TestMaps(t *testing.T) {
	program, err := build(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	s := redistest.Embedded(t)
	traces := make(map[string][]trace.Call)
	for _, kind := range []string{"exclusive", "read", "optimistic", "login"} {
		if traces[kind], err = traceOf(program, s.URL, kind); err != nil {
			t.Fatalf("%s: %v", kind, err)
		}
		describe(t, kind, traces[kind])
	}
	root, err := overlay.Sources("github.com/a2139e8d/latchkey")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{"middleware/middleware.go", "internal/records/engine.go"} {
		steps, err := readMap(root, file)
		if err == nil {
			err = follow(steps, traces["exclusive"])
		}
		if err != nil || len(steps) < 10 {
			t.Errorf("%s: %d steps: %v", file, len(steps), err)
		}
	}
}

// describe logs a trace.
func describe(t *testing.T, kind string, calls []trace.Call) {
	if !testing.Verbose() {
		return
	}
	functions, files := make(map[string]int), make(map[string]bool)
	depth := 0 // of the first write to Redis
	perPackage := make(map[string]int)
	for _, c := range calls {
		if c.File == "" {
			continue
		}
		t.Logf("%*s%s  %s", 2*c.Depth, "", c.Function, c.File)
		if name := c.File + " " + c.Function; functions[name] == 0 {
			functions[name]++
			perPackage[path.Dir(c.File)]++
		}
		files[c.File] = true
		if c.Function == "link.write" {
			depth = max(depth, c.Depth+1)
		}
	}
	t.Logf("%s: %d functions in %d files, depth %d: %v", kind, len(functions), len(files), depth, perPackage)
}

// A trace that leaves the way is noticed.
func TestFollow(t *testing.T) {
	var calls []trace.Call // b calls c
	for i, depth := range []int{0, 1, 2, 1, 0} {
		name := string("abcde"[i])
		calls = append(calls, trace.Call{File: name + ".go", Function: name, Depth: depth},
			trace.Call{File: "t.go", Function: "timer", Aside: true})
	}
	for name, c := range map[string]struct {
		steps []step
		ok    bool
	}{
		"the whole way":    {[]step{{0, "a", "a.go"}, {1, "b", "b.go"}, {2, "c", "c.go"}, {1, "d", "d.go"}, {0, "e", "e.go"}}, true},
		"with gaps":        {[]step{{0, "a", "a.go"}, {1, "c", "c.go"}, {0, "e", "e.go"}}, true},
		"another order":    {[]step{{0, "a", "a.go"}, {1, "d", "d.go"}, {1, "b", "b.go"}}, false},
		"not within":       {[]step{{0, "a", "a.go"}, {1, "b", "b.go"}, {2, "d", "d.go"}}, false},
		"in another file":  {[]step{{0, "a", "a.go"}, {1, "b", "c.go"}}, false},
		"no such function": {[]step{{0, "x", "a.go"}}, false},
		"aside":            {[]step{{0, "a", "a.go"}, {0, "timer", "t.go"}}, false},
	} {
		if err := follow(c.steps, calls); (err == nil) != c.ok {
			t.Errorf("%s: %v", name, err)
		}
	}
}

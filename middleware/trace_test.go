package middleware_test

import (
	"bytes"
	"runtime/trace"
	"testing"

	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/middleware"
)

// An execution trace has a task for each request and each hold, regions for the wait and the commit, and the session's
// ID, so that it shows who has waited for whom. This test is not parallel, since a process has one trace, and not in
// fake time, since the trace has a timer of its own.
func TestExecutionTracesShowTheSession(t *testing.T) {
	r := redistest.Embedded(t)
	s, v := begun(t, r, middleware.Options{}, app())
	id := v.get(s.URL + "/id").body
	var written bytes.Buffer
	if err := trace.Start(&written); err != nil {
		t.Skip("go test writes a trace itself: ", err)
	}
	defer trace.Stop()
	v.get(s.URL+"/add").want(t, 200, "2")
	trace.Stop()
	for _, text := range []string{"latchkey request", "latchkey wait", "latchkey hold", "latchkey commit", "session", id} {
		if !bytes.Contains(written.Bytes(), []byte(text)) { // a trace has its texts as they are
			t.Errorf("the trace does not have %q", text)
		}
	}
	if bytes.Contains(written.Bytes(), []byte(v.cookie(s).Value)) {
		t.Error("the trace has the cookie")
	}
}

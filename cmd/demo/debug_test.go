package main

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/a2139e8d/latchkey/internal/demotest"
)

// The page of who holds and who waits is there, and linked, only if nobody but this machine reaches the demo.
func TestTheDebugPageIsNotForOthers(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	private, public := demotest.Start(t), demotest.Start(t, "-addr", "0.0.0.0:0")
	if page := get(t, c, private.URL+"/debug/sessions"); !strings.Contains(page, fmt.Sprintf("/%d</b>", private.PID())) {
		t.Errorf("the page does not name its process:\n%s", page)
	}
	if _, err := call(t.Context(), c, http.MethodGet, public.URL+"/debug/sessions", nil); err == nil || !strings.Contains(err.Error(), "404") {
		t.Errorf("on an address that others reach: %v, want 404", err)
	}
	for demo, linked := range map[*demotest.Demo]bool{private: true, public: false} {
		if strings.Contains(get(t, c, demo.URL+"/"), `href="debug/sessions"`) != linked {
			t.Errorf("%s: linked %v, want %v", demo.URL, !linked, linked)
		}
	}
	for addr, private := range map[string]bool{
		"127.0.0.1:8080": true, "localhost:0": true, "[::1]:80": true, "127.9.9.9:1": true,
		":8080": false, "0.0.0.0:8080": false, "[::]:8080": false, "192.0.2.1:80": false, "localhost.example.com:80": false, "nowhere": false,
	} {
		if got := (config{addr: addr}).isPrivate(); got != private {
			t.Errorf("-addr %s is private: %v", addr, got)
		}
	}
}

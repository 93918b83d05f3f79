package main

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/demotest"
	"github.com/a2139e8d/latchkey/internal/redistest"
)

// A visitor learns that Redis is unavailable, but not its address. The log has the details. The second page
// then still has a link back.
func TestVisitorsDoNotSeeWhereRedisIs(t *testing.T) {
	t.Parallel()
	r := redistest.Real(t)
	at, err := url.Parse(r.URL)
	if err != nil {
		t.Fatal(err)
	}
	demo := demotest.Start(t, "-redis", r.URL)
	known, unknown := newClient(t), newClient(t)
	for _, way := range []string{"", "/compare/none", "/compare/lock"} {
		post(t, known, demo.URL+way+"/set", "name", "a")
	}
	if info := get(t, known, demo.URL+"/info"); info != `{"lock":"spin","redis":"external"}` {
		t.Errorf("/info: %s", info)
	}

	r.Stop(t)
	const noRedis, noSession, page = "Redis does not reply.", "The session is not available just now.", `<a href="devices">`
	for _, ask := range []struct {
		client       *http.Client
		method, path string
		says         string
	}{
		{unknown, "GET", "/healthz", noRedis},
		{known, "GET", "/result", noSession},
		{known, "GET", "/compare/none/result", noSession},
		{known, "GET", "/compare/lock/result", noSession},
		{unknown, "POST", "/compare/none/set", noSession}, // fails when it is saved
		{known, "POST", "/compare/none/incr", noSession},
		{known, "GET", "/devices", page},
		{known, "POST", "/devices/end-all", `<base href="../">`},
	} {
		before := len(demo.Log())
		_, err := call(t.Context(), ask.client, ask.method, demo.URL+ask.path, url.Values{"name": {"a"}})
		if err == nil || !strings.Contains(err.Error(), "503") || !strings.Contains(err.Error(), ask.says) || strings.Contains(err.Error(), at.Port()) {
			t.Errorf("%s %s: %v", ask.method, ask.path, err)
		}
		if !strings.Contains(ask.path, "/devices") {
			redistest.Eventually(t, "there is a word in the log", func() bool { return len(demo.Log()) > before })
		}
	}
}

// After a restart of Redis the first request of each way succeeds.
func TestTheDemoWorksAfterARestartOfRedis(t *testing.T) {
	t.Parallel()
	r := redistest.Real(t)
	demo := demotest.Start(t, "-redis", r.URL)
	ways := []string{"", "/compare/none", "/compare/lock"}
	for _, way := range ways {
		post(t, newClient(t), demo.URL+way+"/incr")
	}
	used := time.Now()
	r.Restart(t)
	redistest.Eventually(t, "no connection is used again", func() bool { return time.Since(used) > maxIdle })
	for _, way := range ways {
		if got := post(t, newClient(t), demo.URL+way+"/incr"); got != "1" {
			t.Errorf("%s/incr after the restart: %q", way, got)
		}
	}
}

package main

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/a2139e8d/latchkey/internal/demotest"
	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/gomodule/redigo/redis"
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

// Any user of the machine can connect to the embedded Redis, but only the demo knows its password. Its clock
// runs, so keys expire.
func TestTheEmbeddedRedisHasAPassword(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for range 2 {
		at, stop, err := startEmbedded()
		if err != nil {
			t.Fatal(err)
		}
		defer stop()
		u, err := url.Parse(at)
		if err != nil {
			t.Fatal(err)
		}
		password, _ := u.User.Password()
		if len(password) < 20 || seen[password] {
			t.Errorf("the password %q is no secret", password)
		}
		seen[password] = true
		conn, err := redis.DialURL(at)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if _, err := conn.Do("SET", "k", "v", "PX", 50); err != nil {
			t.Errorf("with the password: %v", err)
		}
		redistest.Eventually(t, "the clock runs: a key has expired", func() bool {
			n, err := redis.Int(conn.Do("EXISTS", "k"))
			return err == nil && n == 0
		})
		for _, user := range []*url.Userinfo{nil, url.UserPassword("", "guessed")} {
			u.User = user
			conn, err := redis.DialURL(u.String())
			if err == nil {
				_, err = conn.Do("PING")
				conn.Close()
			}
			if err == nil || !strings.Contains(err.Error(), "NOAUTH") && !strings.Contains(err.Error(), "WRONGPASS") {
				t.Errorf("as %v: %v", user, err)
			}
		}
	}
}

package main

import (
	"bytes"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/a2139e8d/latchkey/internal/redistest"
)

// A visitor learns that Redis is away, but not where it is. The log has the details.
func TestVisitorsDoNotSeeWhereRedisIs(t *testing.T) {
	t.Parallel()
	r := redistest.Real(t)
	at, err := url.Parse(r.URL)
	if err != nil {
		t.Fatal(err)
	}
	c, err := parseFlags([]string{"-redis", r.URL}, noEnv, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	server, err := openRedis(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	defer server.close()
	st, err := server.store(c)
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	var log bytes.Buffer
	app, err := newApp(c, server, st, slog.New(slog.NewTextHandler(&log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	ask := func(method, path, cookie string) *http.Response {
		req := httptest.NewRequest(method, path, strings.NewReader("name=a"))
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		req.Header.Set("Cookie", cookie)
		w := httptest.NewRecorder()
		app.ServeHTTP(w, req)
		return w.Result()
	}
	cookies := map[string]string{}
	for _, way := range []string{"", "/compare/none", "/compare/lock"} {
		set := ask("POST", way+"/set", "").Header.Get("Set-Cookie")
		cookies[way], _, _ = strings.Cut(set, ";")
		if cookies[way] == "" {
			t.Fatalf("%s/set sets no cookie", way)
		}
	}
	if body, _ := io.ReadAll(ask("GET", "/info", "").Body); strings.Contains(string(body), at.Port()) || !strings.Contains(string(body), "external") {
		t.Errorf("/info: %s", body)
	}

	r.Stop(t)
	for path, cookie := range map[string]string{
		"GET /healthz":             "",
		"GET /result":              cookies[""],
		"GET /compare/none/result": cookies["/compare/none"],
		"GET /compare/lock/result": cookies["/compare/lock"],
		"POST /compare/none/set":   "", // fails when it is saved
		"POST /compare/none/incr":  cookies["/compare/none"],
	} {
		method, path, _ := strings.Cut(path, " ")
		log.Reset()
		res := ask(method, path, cookie)
		body, _ := io.ReadAll(res.Body)
		fixed := regexp.MustCompile(`^(Redis does not answer|The session is not available just now)\.( Please try again\.)?\n$`)
		if res.StatusCode != http.StatusServiceUnavailable || !fixed.Match(body) {
			t.Errorf("%s %s: %d %q", method, path, res.StatusCode, body)
		}
		if log.Len() == 0 {
			t.Errorf("%s %s: nothing is logged", method, path)
		}
	}

	// The second page is a page then, too, from which one gets back.
	for path, base := range map[string]string{"GET /devices": "", "POST /devices/end-all": `<base href="../">`} {
		method, path, _ := strings.Cut(path, " ")
		res := ask(method, path, cookies[""])
		body, _ := io.ReadAll(res.Body)
		if res.StatusCode != http.StatusServiceUnavailable || res.Header.Get("Content-Type") != "text/html; charset=utf-8" {
			t.Errorf("%s %s: %d %v", method, path, res.StatusCode, res.Header)
		}
		for _, part := range []string{base, `href="style.css"`, "<h1>My devices</h1>", "not available just now", `<a href="devices">`} {
			if !strings.Contains(string(body), part) {
				t.Errorf("%s %s: there is no %q in %s", method, path, part, body)
			}
		}
		if strings.Contains(string(body), at.Port()) || base == "" && strings.Contains(string(body), "<base") {
			t.Errorf("%s %s: %s", method, path, body)
		}
	}
}

package faults

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/cmd/faults/rig"
)

// A guest makes one request at a time, where a test must know which.
type guest struct {
	*testing.T
	http   *http.Client
	cookie string
}

// A reply is what a guest got. Status 0 is none at all.
type reply struct {
	status       int
	text, cookie string
	took         time.Duration
}

// guest returns one that has a session already.
func (s *scene) guest(d *rig.Demo) *guest {
	s.Helper()
	g := &guest{T: s.T, http: client(s.T)}
	if got := g.post(d, "/reset"); got.cookie == "" {
		s.Fatalf("a guest got no session, but %+v", got)
	} else {
		g.cookie = got.cookie
	}
	return g
}

func (g *guest) get(d *rig.Demo, path string) reply  { return g.ask(d, http.MethodGet, path, "") }
func (g *guest) post(d *rig.Demo, path string) reply { return g.ask(d, http.MethodPost, path, "") }

// set stores param_<name>, which takes as long as the demo's -work.
func (g *guest) set(d *rig.Demo, name string) reply {
	return g.ask(d, http.MethodPost, "/set", "name="+name)
}

func (g *guest) ask(d *rig.Demo, method, path, form string) reply {
	req, err := http.NewRequest(method, d.URL+path, strings.NewReader(form))
	if err != nil {
		panic(err) // a test's own mistake
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	if g.cookie != "" {
		req.Header.Set("Cookie", g.cookie)
	}
	began := time.Now()
	res, err := g.http.Do(req)
	if err != nil {
		return reply{took: time.Since(began)}
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		return reply{took: time.Since(began)}
	}
	got := reply{status: res.StatusCode, text: strings.TrimSpace(string(text)), took: time.Since(began)}
	if cookies := res.Cookies(); len(cookies) > 0 && cookies[0].MaxAge >= 0 {
		got.cookie = cookies[0].Name + "=" + cookies[0].Value
	}
	return got
}

// A holding is a guest's request that holds its session for the demo's -work.
type holding struct {
	*guest
	record, lock string // keys
	replies      chan reply
}

// hold begins one, which is to store param_<name>, and returns when it has the lock.
func (s *scene) hold(d *rig.Demo, name string) *holding {
	s.Helper()
	h := &holding{guest: s.guest(d), replies: make(chan reply, 1)}
	begin := func() { h.replies <- h.set(d, name) }
	go begin()
	eventually(s.T, lockWait, "the request holds its session", func() bool {
		if len(h.replies) > 0 { // it is over, unseen: this machine is busy
			h.must("a save", <-h.replies, http.StatusOK, "ok")
			go begin()
		}
		for _, key := range s.redis.Keys(s.T) {
			if !strings.HasSuffix(key, ".lock") {
				continue
			}
			if holder, _ := s.redis.Get(s.T, key); strings.Contains(holder, "POST /set") {
				h.lock, h.record = key, strings.TrimSuffix(key, ".lock")
			}
		}
		return h.lock != ""
	})
	return h
}

// must fails the test unless a reply is as it should be.
func (g *guest) must(what string, got reply, status int, text string) {
	g.Helper()
	if got.status != status || !strings.Contains(got.text, text) {
		g.Errorf("%s: %d %q, want %d %q", what, got.status, got.text, status, text)
	}
}

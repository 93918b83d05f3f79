package faults

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/demotest"
	"github.com/a2139e8d/latchkey/internal/faults/rig"
	"github.com/gomodule/redigo/redis"
)

// A guest has a session that no visitor uses, and makes one request at a time. It is for tests that must know
// which request a command belongs to. Its slow writes go to /set, which no visitor uses.
type guest struct {
	*testing.T
	http   *http.Client
	cookie string
}

// A reply is the response to a guest, or to a user. Status 0 means that there was none.
type reply struct {
	status       int
	text, cookie string
	took         time.Duration
}

// guest returns a guest that has a session already.
func (s *scene) guest(d *demotest.Demo) *guest {
	s.Helper()
	g := s.guestWith("")
	g.begin(d)
	return g
}

// guestWith returns a guest with a given cookie, "" for none.
func (s *scene) guestWith(cookie string) *guest {
	return &guest{T: s.T, http: client(s.T), cookie: cookie}
}

// begin begins a new session of the guest.
func (g *guest) begin(d *demotest.Demo) {
	g.Helper()
	g.cookie = ""
	g.adopt(d, "/reset")
}

func (g *guest) login(d *demotest.Demo) {
	g.Helper()
	g.adopt(d, "/login")
}

// adopt keeps the cookie of a response.
func (g *guest) adopt(d *demotest.Demo, path string) {
	g.Helper()
	got := g.post(d, path)
	if got.cookie == "" {
		g.Fatalf("%s was answered without a cookie: %+v", path, got)
	}
	g.cookie = got.cookie
}

func (g *guest) get(d *demotest.Demo, path string) reply { return g.ask(d, http.MethodGet, path, nil) }
func (g *guest) post(d *demotest.Demo, path string) reply {
	return g.ask(d, http.MethodPost, path, nil)
}

// set stores a name. That takes as long as the demo's -work.
func (g *guest) set(d *demotest.Demo, name string) reply {
	return g.ask(d, http.MethodPost, "/set", url.Values{"name": {name}})
}

// setting begins a set, and returns the channel of its response.
func (g *guest) setting(d *demotest.Demo, name string) <-chan reply {
	replies := make(chan reply, 1)
	go func() { replies <- g.set(d, name) }()
	return replies
}

func (g *guest) ask(d *demotest.Demo, method, path string, form url.Values) reply {
	return ask(context.Background(), g.http, method, d.URL+path, g.cookie, form)
}

// ask makes a request, with a cookie if that is not empty, and reads the whole response.
func ask(ctx context.Context, c *http.Client, method, at, cookie string, form url.Values) (got reply) {
	req, err := http.NewRequestWithContext(ctx, method, at, strings.NewReader(form.Encode()))
	if err != nil {
		panic(err) // a mistake in the test
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	if cookie != "" {
		req.Header.Set("Cookie", cookie)
	}
	began := time.Now()
	defer func() { got.took = time.Since(began) }()
	res, err := c.Do(req)
	if err != nil {
		return reply{}
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		return reply{}
	}
	got = reply{status: res.StatusCode, text: strings.TrimSpace(string(text))}
	cookies := slices.DeleteFunc(res.Cookies(), func(c *http.Cookie) bool { return strings.HasSuffix(c.Name, "-signed-in") }) // no session cookie
	if len(cookies) > 0 && cookies[0].MaxAge >= 0 {
		got.cookie = cookies[0].Name + "=" + cookies[0].Value
	}
	return got
}

// must asserts the status and the text of a response. An empty text matches any.
func (g *guest) must(what string, got reply, status int, text string) {
	g.Helper()
	if got.status != status || text != "" && got.text != text {
		g.Errorf("%s: %d %q, want %d %q", what, got.status, got.text, status, text)
	}
}

func (g *guest) mustSet(d *demotest.Demo, name string) {
	g.Helper()
	g.must("/set "+name, g.set(d, name), http.StatusOK, "ok")
}

func (g *guest) names(d *demotest.Demo) (names []string) {
	g.Helper()
	got := g.get(d, "/params")
	if err := json.Unmarshal([]byte(got.text), &names); err != nil || got.status != http.StatusOK {
		g.Errorf("/params was answered with %d %q", got.status, got.text)
	}
	return names
}

func (g *guest) mustHave(d *demotest.Demo, want ...string) {
	g.Helper()
	slices.Sort(want)
	if got := g.names(d); !slices.Equal(got, want) {
		g.Errorf("the session has %q, want %q", got, want)
	}
}

// mustBeForgotten asserts that the guest's session is gone, and that a write begins a new session with
// another ID.
func (g *guest) mustBeForgotten(d *demotest.Demo) {
	g.Helper()
	g.must("a read after the loss", g.get(d, "/count"), http.StatusOK, "0")
	g.mustHave(d)
	for range 2 {
		got := g.post(d, "/incr")
		g.must("a write after the loss", got, http.StatusOK, "1")
		if got.cookie == "" || rig.RecordKey(g.T, got.cookie) == rig.RecordKey(g.T, g.cookie) {
			g.Errorf("an unknown ID was adopted: cookie %q", got.cookie)
		}
	}
}

// A holding is a guest's request that holds its session for the demo's -work.
type holding struct {
	*guest
	scene        *scene
	demo         *demotest.Demo
	name         string   // that the request stores
	saved        []string // by earlier requests, which were over too soon
	record, lock string   // keys
	replies      <-chan reply
}

// hold begins a holding with a new guest, which stores a name.
func (s *scene) hold(d *demotest.Demo, name string) *holding {
	s.Helper()
	return s.holdAs(s.guest(d), d, name)
}

// holdAs begins a holding with the given guest, and returns when it has the lock.
func (s *scene) holdAs(g *guest, d *demotest.Demo, name string) *holding {
	s.Helper()
	record := rig.RecordKey(s.T, g.cookie)
	h := &holding{guest: g, scene: s, demo: d, name: name, record: record, lock: record + ".lock"}
	h.replies = g.setting(d, name)
	h.awaitLock()
	return h
}

// holdAndWait begins a holding in one process, and a second request that waits for it in another process, in a
// queue whose key has the given suffix. The two store the names held and waited. On a busy machine the first may
// have ended before the second arrives. Then both are sent again.
func (s *scene) holdAndWait(g *guest, holds, waits *demotest.Demo, queue string) (h *holding, waiting <-chan reply) {
	s.Helper()
	send := func() {
		h = s.holdAs(g, holds, "held")
		waiting = g.setting(waits, "waited")
	}
	send()
	eventually(s.T, 2*s.longest, "the other one waits", func() bool {
		if len(waiting) > 0 {
			g.must("a request that came too late to wait", <-waiting, http.StatusOK, "ok")
			g.must("the request before it", <-h.replies, http.StatusOK, "ok")
			send()
		}
		return s.redis.Exists(s.T, h.lock+queue)
	})
	return h, waiting
}

// awaitLock returns when the request has the lock.
func (h *holding) awaitLock() {
	h.Helper()
	eventually(h.T, h.scene.longest, "the request holds its session", func() bool {
		if len(h.replies) > 0 { // it has ended already, since the machine is busy
			h.must("a save", <-h.replies, http.StatusOK, "ok")
			h.saved = append(h.saved, h.name)
			h.name += "+" // a name that is there already would change nothing
			h.replies = h.setting(h.demo, h.name)
		}
		return h.scene.at(h.lock).Exists(h.T, h.lock)
	})
}

// mustHave is that of the guest, who may have more names if the machine is busy.
func (h *holding) mustHave(d *demotest.Demo, want ...string) {
	h.Helper()
	h.guest.mustHave(d, append(want, h.saved...)...)
}

// whileHeld makes Redis execute a command while the request has the lock, and returns the reply. On a busy machine the
// request may be over before that, and is sent again.
func (h *holding) whileHeld(command ...any) any {
	h.Helper()
	const script = `return redis.call('EXISTS', KEYS[1]) == 1 and redis.call(unpack(ARGV)) or -1`
	args := append([]any{script, 1, h.lock}, command...)
	reply := h.scene.redis.Do(h.T, "EVAL", args...)
	for ; reply == int64(-1); reply = h.scene.redis.Do(h.T, "EVAL", args...) {
		h.awaitLock()
	}
	return reply
}

// heldWhen makes Redis execute a command that no script may call, and reports whether the request had the lock then.
func (h *holding) heldWhen(command string, args ...any) bool {
	h.Helper()
	conn, err := redis.DialURL(h.scene.redis.URL)
	if err != nil {
		h.Fatal(err)
	}
	defer conn.Close()
	_ = conn.Send("MULTI") // EXEC returns any error
	_ = conn.Send("EXISTS", h.lock)
	_ = conn.Send(command, args...)
	replies, err := redis.Values(conn.Do("EXEC"))
	if err != nil {
		h.Fatal(err)
	}
	return replies[0] == int64(1)
}

// freeze makes Redis put off all commands that write, while the request has the lock. So the request cannot end before
// thaw. On a busy machine the request may be over before that, and is sent again.
func (h *holding) freeze() {
	h.Helper()
	const long = time.Minute
	for !h.heldWhen("CLIENT", "PAUSE", long.Milliseconds(), "WRITE") {
		h.thaw()
		h.awaitLock()
	}
}

func (h *holding) thaw() {
	h.Helper()
	h.scene.redis.Do(h.T, "CLIENT", "UNPAUSE")
}

// lose deletes keys while the request has the lock.
func (h *holding) lose(keys ...any) {
	h.Helper()
	if n := h.whileHeld(append([]any{"DEL"}, keys...)...); n != int64(len(keys)) {
		h.Errorf("%d of the keys %v are deleted", n, keys)
	}
}

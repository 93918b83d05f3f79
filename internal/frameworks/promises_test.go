package frameworks

import (
	"bufio"
	"context"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/session"
	"github.com/coder/websocket"
)

// The cookie is set when the first value is stored, not before, and is then kept. No addition is lost, however
// many requests come at once.
func TestTheCookieIsSetAndKept(t *testing.T) {
	each(t, programs, func(t *testing.T, s *site, _ *shop) {
		v := newVisitor(t, s)
		if a := v.get("/cart"); a.sets() || a.body != "0" && a.body != "0\n" {
			t.Errorf("the response %q sets the cookie %q", a.body, a.Header["Set-Cookie"])
		}
		a := v.post("/add")
		a.want(t, 200, "1")
		if cookies := a.Cookies(); len(cookies) != 1 || cookies[0].Name != "sid" || !cookies[0].HttpOnly {
			t.Errorf("%v", a.Header)
		}
		if a := v.post("/add"); a.sets() {
			t.Errorf("the cookie is set again: %v", a.Header)
		}
		var all sync.WaitGroup
		for range 20 {
			all.Go(func() {
				if a := v.post("/add"); a.StatusCode != 200 {
					t.Errorf("%d %q %v", a.StatusCode, a.body, a.err)
				}
			})
		}
		all.Wait()
		v.get("/cart").want(t, 200, "22")
	})
}

// The values that the login sets are visible on the page to which it redirects, under a new ID. The flash message
// is shown only once. The logout removes all values.
func TestLoginRedirectAndFlash(t *testing.T) {
	each(t, programs, func(t *testing.T, s *site, _ *shop) {
		v := newVisitor(t, s)
		v.post("/add").want(t, 200, "1")
		before := v.cookie()
		if a := v.post("/login", "user=ann"); a.StatusCode != 303 || a.Header.Get("Location") != "/" {
			t.Errorf("%d %v", a.StatusCode, a.Header)
		}
		if after := v.cookie(); after == before || after == "" {
			t.Errorf("the cookie was %q, and is %q", before, after)
		}
		v.get("/").want(t, 200, "hello ann, welcome back")
		v.get("/").want(t, 200, "hello ann")
		v.get("/cart").want(t, 200, "1")
		if a := v.post("/logout"); a.StatusCode != 303 || v.cookie() != "" {
			t.Errorf("%d %v", a.StatusCode, a.Header)
		}
		v.get("/").want(t, 200, "hello")
	})
}

// The guard of a group responds instead of the handler. The framework's own responses to unknown paths arrive
// unchanged, with and without a session.
func TestTheFrameworksOwnAnswers(t *testing.T) {
	each(t, programs, func(t *testing.T, s *site, _ *shop) {
		v := newVisitor(t, s)
		if a := v.get("/account/"); a.StatusCode != 401 || !strings.Contains(a.body, "log in first") {
			t.Errorf("%d %q", a.StatusCode, a.body)
		}
		for range 2 {
			v.get("/nowhere").want(t, 404, "*")
			if a := v.get("/add"); a.StatusCode != 405 || a.sets() {
				t.Errorf("%d %v", a.StatusCode, a.Header)
			}
			v.post("/login", "user=ann").want(t, 303, "*")
		}
		v.get("/account/").want(t, 200, "the account of ann")
	})
}

// In mode Optimistic a router runs a second time for the same request, if another request has changed the
// session meanwhile. It finds the same route, with the same parameters.
func TestOptimisticRoutesAreFoundAgain(t *testing.T) {
	each(t, programs, func(t *testing.T, s *site, shop *shop) {
		for _, path := range []string{"/shop/tea", "/its-mode/tea"} {
			if strings.Contains(t.Name(), "gin") && path != "/shop/tea" {
				continue
			}
			v, runs := newVisitor(t, s), 0
			shop.page = func(r *http.Request, item string) int {
				if runs++; item != "tea" {
					t.Errorf("run %d has item %q", runs, item)
				}
				n := add(session.FromContext(r.Context()), 1)
				if runs == 2 {
					v.post("/add").want(t, 200, "2")
				}
				return n
			}
			v.get(path).want(t, 200, "1")
			v.get(path).want(t, 200, "3")
			if runs != 3 {
				t.Errorf("%s: the handler ran %d times", path, runs)
			}
		}
	})
}

// The first event of a stream arrives while the handler goes on, together with the cookie. The session is free
// meanwhile.
func TestServerSentEvents(t *testing.T) {
	each(t, programs, func(t *testing.T, s *site, shop *shop) {
		v := newVisitor(t, s)
		res, err := v.Get(s.URL + "/events")
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		events := bufio.NewScanner(res.Body)
		event := func(want string) {
			t.Helper()
			for events.Scan() {
				if data, ok := strings.CutPrefix(events.Text(), "data:"); ok {
					if strings.TrimSpace(data) != want {
						t.Fatalf("the event is %q, want %q", data, want)
					}
					return
				}
			}
			t.Fatalf("waiting for %q: %v", want, events.Err())
		}
		event("1")
		v.post("/add").want(t, 200, "2")
		close(shop.more)
		event("more")
		for events.Scan() {
		}
		if events.Err() != nil {
			t.Errorf("the end of the stream: %v", events.Err())
		}
	})
}

// The session of a websocket is saved before the handshake, and is free while the websocket is open.
func TestWebsocket(t *testing.T) {
	each(t, programs, func(t *testing.T, s *site, _ *shop) {
		ctx, cancel := context.WithTimeout(context.Background(), 15*time.Second)
		defer cancel()
		v := newVisitor(t, s)
		c, _, err := websocket.Dial(ctx, s.URL+"/ws", &websocket.DialOptions{HTTPClient: v.Client})
		if err != nil {
			t.Fatal(err)
		}
		defer c.CloseNow()
		if _, text, err := c.Read(ctx); string(text) != "1" {
			t.Fatalf("%q %v", text, err)
		}
		v.post("/add").want(t, 200, "2")
		if err := c.Write(ctx, websocket.MessageText, []byte("hello")); err != nil {
			t.Fatal(err)
		}
		if _, text, err := c.Read(ctx); string(text) != "hello" {
			t.Fatalf("%q %v", text, err)
		}
	})
}

// If the framework responds with an error, the changes made before it are saved. A panic is a 500, even after
// half of a response was written. A response that the handler aborts is cut off. Neither saves anything. If the
// session could not be saved, or was changed after that, the error replaces the response, whatever the framework
// believes to have sent.
func TestWhatGoesWrong(t *testing.T) {
	each(t, programs, func(t *testing.T, s *site, shop *shop) {
		shop.lose = func() { s.loseLocks(t) }
		for _, want := range []struct {
			path   string
			form   string
			status int // 0: cut off
			body   string
			cart   string // afterwards
		}{
			{"/fail", "", 418, "a teapot", "101"},
			{"/panic", "", 500, "", "1"},
			{"/panic", "half=this is well", 500, "", "1"},
			{"/abort", "", 0, "", "1"},
			{"/lose", "", 503, "The session is not available", "1"},
			{"/late", "", 500, "", "101"},
		} {
			if want.form != "" && strings.Contains(t.Name(), "middleware") {
				continue // see TestEchosMiddlewareWhereAPanicComesLate
			}
			v := newVisitor(t, s)
			v.post("/add").want(t, 200, "1")
			a := v.post(want.path, want.form)
			if a.StatusCode != want.status || (a.err == nil) != (want.status > 0) || !strings.Contains(a.body, want.body) ||
				strings.Contains(a.body, "well") || a.Header.Get("X-Half") != "" || a.sets() {
				t.Errorf("%s: %d %q %v %v", want.path, a.StatusCode, a.body, a.Header, a.err)
			}
			if retry := a.Header.Get("Retry-After"); (retry == "1") != (want.status == 503) {
				t.Errorf("%s: Retry-After is %q", want.path, retry)
			}
			v.get("/cart").want(t, 200, want.cart)
		}
		s.redis.Stop(t)
		if a := newVisitor(t, s).post("/add"); a.StatusCode != 503 || !strings.HasPrefix(a.body, "The session is not available") {
			t.Errorf("without Redis: %d %q", a.StatusCode, a.body)
		}
	})
}

// If the panic is recovered inside the sessions, the handler's changes until then are saved, as with any handler
// that responds 500. The guide warns of that.
func TestAPanicThatIsRecoveredInsideIsSaved(t *testing.T) {
	each(t, recoveringInside, func(t *testing.T, s *site, _ *shop) {
		v := newVisitor(t, s)
		v.post("/add").want(t, 200, "1")
		v.post("/panic").want(t, 500, "*")
		v.get("/cart").want(t, 200, "101")
	})
}

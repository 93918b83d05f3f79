package middleware_test

import (
	"encoding/base64"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/secret"
	"github.com/a2139e8d/latchkey/internal/simulation/model/jar"
	"github.com/a2139e8d/latchkey/middleware"
	"github.com/a2139e8d/latchkey/session"
	"github.com/gorilla/securecookie"
)

const (
	guestCookie  = "sid"
	memberCookie = "sid-login"
)

// kept are the cookies that a browser has, by their names.
type kept struct{ guest, member string }

// put changes the cookies as a response says.
func (h *kept) put(response *httptest.ResponseRecorder) {
	for _, set := range response.Result().Cookies() {
		value := set.Value
		if set.MaxAge < 0 {
			value = ""
		}
		if set.Name == guestCookie {
			h.guest = value
		} else {
			h.member = value
		}
	}
}

// publicID returns the public ID that a cookie stands for: see id.go.
func publicID(t *testing.T, c *http.Cookie) string {
	t.Helper()
	var raw []byte
	err := securecookie.New(testKey, nil).SetSerializer(securecookie.NopEncoder{}).MaxAge(0).Decode(c.Name, c.Value, &raw)
	tag := raw[:max(0, len(raw)-32)]
	id, idErr := secret.IDOf(raw[len(tag):])
	if err != nil || idErr != nil {
		t.Fatalf("the cookie %v: %v, %v", c, err, idErr)
	}
	if len(tag) > 0 {
		return base64.RawURLEncoding.EncodeToString(tag) + "." + id[:len(id)/2]
	}
	return id
}

// An act is a request that waits in its handler, after its session was opened, until end.
type act struct {
	jar.Request
	user     string
	number   int
	came     kept
	opened   chan *session.Session
	proceed  chan struct{}
	done     chan struct{} // nil until begin
	session  string        // the public ID of the session that it has opened, or ""
	response *httptest.ResponseRecorder
}

func newAct(r jar.Request, user string, number int) *act {
	return &act{Request: r, user: user, number: number, opened: make(chan *session.Session), proceed: make(chan struct{}), response: httptest.NewRecorder()}
}

// begin sends the request. It returns the session that was opened, or nil if there is an answer before that.
func (a *act) begin(s *middleware.Sessions) *session.Session {
	r := httptest.NewRequest(http.MethodPost, "/", nil)
	r.Header.Set("Sec-Fetch-Mode", "cors")
	if a.Navigation {
		r.Header.Set("Sec-Fetch-Mode", "navigate")
	}
	if a.came.guest != "" {
		r.AddCookie(&http.Cookie{Name: guestCookie, Value: a.came.guest})
	}
	if a.came.member != "" {
		r.AddCookie(&http.Cookie{Name: memberCookie, Value: a.came.member})
	}
	a.done = make(chan struct{})
	go func() {
		defer close(a.done)
		s.Handler(a).ServeHTTP(a.response, r)
	}()
	select {
	case opened := <-a.opened:
		return opened
	case <-a.done:
		return nil
	}
}

// ServeHTTP does the request's work.
func (a *act) ServeHTTP(_ http.ResponseWriter, r *http.Request) {
	s := session.FromContext(r.Context())
	a.opened <- s
	<-a.proceed
	switch a.Call {
	case "write":
		s.Set("write "+strconv.Itoa(a.number), true)
	case "login":
		s.Login(a.user)
	case "logout":
		s.Destroy()
	case "renew":
		s.Renew()
	case "remember":
		s.Remember(24 * time.Hour)
	}
}

// writesIn returns the numbers of the requests whose writes are in a session.
func writesIn(s *session.Session) (all []int) {
	for key := range s.Keys() {
		if number, isWrite := strings.CutPrefix(key, "write "); isWrite {
			n, _ := strconv.Atoi(number)
			if n >= 0 {
				all = append(all, n)
			}
		}
	}
	slices.Sort(all)
	return all
}

// end lets the handler return, once, and waits for the response.
func (a *act) end() {
	select {
	case <-a.proceed:
	default:
		close(a.proceed)
	}
	<-a.done
}

// cookie returns the cookie of a name that the response sets or deletes, or nil.
func (a *act) cookie(name string) *http.Cookie {
	for _, set := range a.response.Result().Cookies() {
		if set.Name == name {
			return set
		}
	}
	return nil
}

// come makes a request with a browser's cookies, and returns its act, which is over.
func (p *play) come(s *middleware.Sessions, h kept, call string) *act {
	a := newAct(jar.Request{Call: call, Navigation: true}, p.userName("ann"), -1)
	a.came = h
	a.begin(s)
	a.end()
	if a.response.Code != http.StatusOK {
		p.t.Fatalf("the first %s: status %d", call, a.response.Code)
	}
	return a
}

// newBrowser makes a call that begins a session, and comes back with it. It returns the browser's cookies, and the
// public ID of the session.
func (p *play) newBrowser(s *middleware.Sessions, call string) (h kept, id string) {
	a := p.come(s, h, call)
	h.put(a.response)
	p.come(s, h, "")
	name := guestCookie
	if call == "login" {
		name = memberCookie
	}
	return h, publicID(p.t, a.cookie(name))
}

// begin begins the sessions that exist before the course: see jar.Start.
func (p *play) begin(s *middleware.Sessions) {
	var guest kept
	switch p.course.Start {
	case jar.Nothing:
	case jar.Guest, jar.Planted:
		p.browser, p.ids["A"] = p.newBrowser(s, "write")
		p.attacker = p.browser
	case jar.Elsewhere:
		p.browser, p.ids["A"] = p.newBrowser(s, "write")
		_, p.ids["B"] = p.newBrowser(s, "login")
	case jar.Member:
		p.browser, p.ids["A"] = p.newBrowser(s, "login")
	case jar.Dead, jar.DeadAndGuest:
		p.browser, p.ids["A"] = p.newBrowser(s, "login")
		must(p.t, s.End(p.t.Context(), p.ids["A"]))
		if p.course.Start == jar.DeadAndGuest {
			guest, p.ids["B"] = p.newBrowser(s, "write")
			p.browser.guest = guest.guest
		}
	case jar.MovedAndGuest:
		p.browser, p.ids["A"] = p.newBrowser(s, "login")
		p.ids["B"] = publicID(p.t, p.come(s, p.browser, "renew").cookie(memberCookie))
		guest, p.ids["C"] = p.newBrowser(s, "write")
		p.browser.guest = guest.guest
	default:
		p.t.Fatalf("unknown start: %s", p.course.Start)
	}
}

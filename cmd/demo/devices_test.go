package main

import (
	"html"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/demotest"
	"github.com/a2139e8d/latchkey/internal/redistest"
)

const (
	firefox = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"
	iPhone  = "Mozilla/5.0 (iPhone; CPU iPhone OS 18_6 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.6 Mobile/15E148 Safari/604.1"
)

// A saying transport sends a User-Agent.
type saying struct {
	http.RoundTripper
	agent string
}

func (s saying) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("User-Agent", s.agent)
	return s.RoundTripper.RoundTrip(r)
}

// A person has a browser, on the second page of a process.
type person struct {
	*http.Client
	url string
}

func newPerson(t *testing.T, url, agent string) person {
	t.Helper()
	c := newClient(t)
	c.Transport = saying{c.Transport, agent}
	return person{c, url}
}

var (
	pageUser   = regexp.MustCompile(`<b id="user">(.*?)</b>`)
	pageDevice = regexp.MustCompile(`(?s)<li class="card device"( data-this)?>.*?<h2>(.*?)(?: <span.*?)?</h2>.*?value="(.*?)"`)
)

// sees returns what the page shows: the user and, by device, the IDs of the sessions. The ID of the person's
// own session begins with "this ".
func (p person) sees(t *testing.T) (user string, sessions map[string]string) {
	t.Helper()
	page := get(t, p.Client, p.url+"/devices")
	if m := pageUser.FindStringSubmatch(page); m != nil {
		user = html.UnescapeString(m[1])
	}
	sessions = map[string]string{}
	for _, m := range pageDevice.FindAllStringSubmatch(page, -1) {
		name := m[2]
		if m[1] != "" {
			name = "this " + name
		}
		sessions[name] = m[3]
	}
	return user, sessions
}

// wantUser checks which user is signed in ("" for none) and how many sessions are listed.
func (p person) wantUser(t *testing.T, user string, sessions int) {
	t.Helper()
	if got, list := p.sees(t); got != user || len(list) != sessions {
		t.Errorf("the page shows %q with %v, want %q with %d", got, list, user, sessions)
	}
}

// Two devices of a user see and end each other, over two processes.
func TestTheDevicesOfAUser(t *testing.T) {
	t.Parallel()
	r := redistest.Real(t)
	one, two := demotest.Start(t, "-redis", r.URL), demotest.Start(t, "-redis", r.URL)
	laptop, phone := newPerson(t, one.URL, firefox), newPerson(t, two.URL, iPhone)
	bob := newPerson(t, two.URL, firefox)
	post(t, laptop.Client, one.URL+"/incr")
	for p, name := range map[person]string{laptop: "ann", phone: " ann ", bob: "<bob>"} {
		p.wantUser(t, "", 0)
		post(t, p.Client, p.url+"/devices/sign-in", "name", name)
	}
	bob.wantUser(t, "<bob>", 1)
	if n := get(t, laptop.Client, one.URL+"/count"); n != "1" {
		t.Errorf("after signing in the counter is at %s, want 1", n)
	}
	_, list := laptop.sees(t)
	if len(list) != 2 || list["this Firefox on Linux"] == "" || list["Safari on iPhone"] == "" {
		t.Fatalf("ann's laptop shows %q", list)
	}

	post(t, bob.Client, bob.url+"/devices/end", "id", list["Safari on iPhone"])
	phone.wantUser(t, "ann", 2) // no user ends the sessions of another
	post(t, laptop.Client, laptop.url+"/devices/end", "id", list["Safari on iPhone"])
	if page := get(t, phone.Client, phone.url+"/devices"); !strings.Contains(page, "not signed in here any more") {
		t.Errorf("the phone does not say that it was signed out:\n%s", page)
	}
	post(t, phone.Client, phone.url+"/devices/end-all") // a click that comes too late
	laptop.wantUser(t, "ann", 1)

	post(t, phone.Client, phone.url+"/devices/sign-in", "name", "ann") // at once
	post(t, phone.Client, phone.url+"/devices/end-others")
	laptop.wantUser(t, "", 0)
	phone.wantUser(t, "ann", 1)
	post(t, laptop.Client, laptop.url+"/devices/sign-in", "name", "ann")
	post(t, phone.Client, phone.url+"/devices/end-all")
	for _, p := range []person{laptop, phone} {
		p.wantUser(t, "", 0)
	}
	if page := get(t, phone.Client, phone.url+"/devices"); strings.Contains(page, "any more") {
		t.Error("the page tells the user who has ended all sessions that this one is over")
	}
	bob.wantUser(t, "<bob>", 1)
}

// A user can sign out of this session, and a wrong name is refused. A user without other sessions is not
// offered to end others, and a button that also ends this session says so, and asks first.
func TestSigningInAndOut(t *testing.T) {
	t.Parallel()
	p := demotest.Start(t, "-lock", "none") // the second page needs a lock nevertheless
	one, two := newPerson(t, p.URL, firefox), newPerson(t, p.URL, iPhone)
	for n, who := range []person{one, two} {
		post(t, who.Client, p.URL+"/devices/sign-in", "name", "ann")
		page := get(t, one.Client, p.URL+"/devices")
		if offered := strings.Contains(page, "End all others"); offered != (n == 1) || !strings.Contains(page, "End all, here too") {
			t.Errorf("with %d others:\n%s", n, page)
		}
	}
	_, list := one.sees(t)
	post(t, one.Client, p.URL+"/devices/end", "id", list["this Firefox on Linux"])
	one.wantUser(t, "", 0)
	for _, name := range []string{"", "  ", strings.Repeat("x", maxName+1)} {
		_, err := call(t.Context(), one.Client, http.MethodPost, p.URL+"/devices/sign-in", url.Values{"name": {name}})
		if err == nil || !strings.Contains(err.Error(), "1 to 64 bytes") {
			t.Errorf("signing in as %q: %v", name, err)
		}
	}
	one.wantUser(t, "", 0)
}

// Times are in words.
func TestMoments(t *testing.T) {
	t.Parallel()
	now := time.Now()
	for ago, want := range map[time.Duration]string{
		0:                              "just now",
		90 * time.Second:               "a minute ago",
		5*time.Minute + time.Second:    "5 minutes ago",
		-30 * time.Second:              "within a minute",
		-90 * time.Minute:              "in 90 minutes",
		-30*24*time.Hour + time.Second: "in 30 days",
	} {
		if got := at(now.Add(-ago), now); got.Words != want {
			t.Errorf("%v ago is %q, want %q", ago, got.Words, want)
		}
	}
	if got := at(time.Time{}, now); got != (moment{Words: "not known"}) {
		t.Errorf("no time is %q", got)
	}
}

// A User-Agent becomes words that people know.
func TestDevice(t *testing.T) {
	t.Parallel()
	for agent, want := range map[string]string{
		"Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) HeadlessChrome/140.0.0.0 Safari/537.36":                           "Chrome on Linux",
		"Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36 Edg/140.0.0.0":           "Edge on Windows",
		"Mozilla/5.0 (Linux; Android 10; K) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Mobile Safari/537.36":                         "Chrome on Android",
		"Mozilla/5.0 (iPhone; CPU iPhone OS 18_6 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.6 Mobile/15E148 Safari/604.1": "Safari on iPhone",
		"Mozilla/5.0 (iPad; CPU OS 18_6 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) CriOS/140.0.0.0 Mobile/15E148 Safari/604.1":       "Chrome on iPad",
		"Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.6 Safari/605.1.15":                   "Safari on a Mac",
		"Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36 OPR/124.0.0.0":     "Opera on a Mac",
		"Mozilla/5.0 (Linux; Android 10; K) AppleWebKit/537.36 (KHTML, like Gecko) SamsungBrowser/28.0 Chrome/130.0.0.0 Mobile Safari/537.36":     "Samsung Internet on Android",
		"curl/8.14.1": "curl",
		"":            "Some program",
	} {
		if got := device(&http.Request{Header: http.Header{"User-Agent": {agent}}}); got != want {
			t.Errorf("%q is %q, want %q", agent, got, want)
		}
	}
}

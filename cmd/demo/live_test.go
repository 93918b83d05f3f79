package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/demotest"
	"github.com/a2139e8d/latchkey/internal/redistest"
)

// A stream is what a page has open on GET /devices/live.
type stream struct {
	status int
	lines  *bufio.Scanner
	close  func()
}

// follows opens a stream, which ends with the test at the latest.
func (p person) follows(t *testing.T) stream {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, p.url+"/devices/live", nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := p.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	closes := func() { _ = res.Body.Close() }
	t.Cleanup(closes)
	return stream{res.StatusCode, bufio.NewScanner(res.Body), closes}
}

// next returns the next event and its data, or io.EOF for the end of the stream.
func (s stream) next() (event, data string, _ error) {
	for s.lines.Scan() {
		name, value, _ := strings.Cut(s.lines.Text(), ":")
		switch value = strings.TrimPrefix(value, " "); name {
		case "event":
			event = value
		case "data":
			data = value
		case "":
			return event, data, nil
		}
	}
	if err := s.lines.Err(); err != nil {
		return "", "", err
	}
	return "", "", io.EOF
}

// tells reads events until one is as described: "devices 2" has two IDs. Lists may come and go before that.
func (s stream) tells(t *testing.T, want string) {
	t.Helper()
	for {
		event, data, err := s.next()
		got := event
		if event == "devices" {
			got = fmt.Sprint(event, " ", len(strings.Fields(data)))
		}
		switch {
		case err != nil:
			t.Fatalf("waiting for %q: %v", want, err)
		case got == want:
			return
		case event != "devices" && event != "away": // away: a look has failed, on a busy machine
			t.Fatalf("the stream tells %q, want %q", got, want)
		}
	}
}

// An open page is told that another process has ended its session, and that other devices come and go. Its
// EventSource then connects again, and is told to stop.
func TestAnOpenPageFollowsItsSession(t *testing.T) {
	t.Parallel()
	r := redistest.Real(t)
	one, two := demotest.Start(t, "-redis", r.URL), demotest.Start(t, "-redis", r.URL)
	laptop, phone := newPerson(t, one.URL, firefox), newPerson(t, two.URL, iPhone)
	if got := laptop.follows(t); got.status != http.StatusNoContent {
		t.Errorf("for a guest the stream is a %d, want 204", got.status)
	}
	post(t, laptop.Client, laptop.url+"/devices/sign-in", "name", "ann")
	ofLaptop := laptop.follows(t)
	ofLaptop.tells(t, "devices 1")
	post(t, phone.Client, phone.url+"/devices/sign-in", "name", "ann")
	ofLaptop.tells(t, "devices 2")
	ofPhone := phone.follows(t)
	ofPhone.tells(t, "devices 2")

	post(t, phone.Client, phone.url+"/devices/end-others")
	ofLaptop.tells(t, "ended")
	if event, _, err := ofLaptop.next(); !errors.Is(err, io.EOF) {
		t.Errorf("after its end the stream has %q, %v", event, err)
	}
	if again := laptop.follows(t); again.status != http.StatusNoContent {
		t.Errorf("connecting again is a %d, want 204", again.status)
	}
	ofPhone.tells(t, "devices 1") // it goes on, though its session has a new ID
	post(t, phone.Client, phone.url+"/login")
	post(t, phone.Client, phone.url+"/devices/end-all")
	ofPhone.tells(t, "ended")
}

// An open page is told that the list is not available. The stream goes on, and tells the list when Redis is back.
func TestAnOpenPageIsToldThatRedisIsAway(t *testing.T) {
	t.Parallel()
	r := redistest.Real(t)
	demo := demotest.Start(t, "-redis", r.URL)
	ann := newPerson(t, demo.URL, firefox)
	post(t, ann.Client, ann.url+"/devices/sign-in", "name", "ann")
	page := ann.follows(t)
	page.tells(t, "devices 1")
	r.Pause(t)
	page.tells(t, "away")
	r.Resume(t)
	page.tells(t, "devices 1")
}

// An open page does not keep its session alive, however often it connects or asks what has changed.
func TestAnOpenPageIsNoUse(t *testing.T) {
	t.Parallel()
	demo := demotest.Start(t, "-ttl", "3s")
	ann := newPerson(t, demo.URL, firefox)
	var page stream
	redistest.Eventually(t, "the page is open before its session expires", func() bool {
		post(t, ann.Client, ann.url+"/devices/sign-in", "name", "ann")
		page = ann.follows(t)
		return page.status == http.StatusOK
	})
	redistest.Eventually(t, "the session has expired", func() bool {
		user := get(t, ann.Client, ann.url+"/user")
		get(t, ann.Client, ann.url+"/devices/now")
		again := ann.follows(t)
		again.close()
		return again.status == http.StatusNoContent && user == ""
	})
	page.tells(t, "ended")
}

// SIGTERM ends streams, so the program does not wait for them, and leaves no lock behind.
func TestSIGTERMEndsStreams(t *testing.T) {
	t.Parallel()
	r := redistest.Real(t)
	demo := demotest.Start(t, "-redis", r.URL, "-lock-wait", "10m") // it would wait that long for a stream
	ann := newPerson(t, demo.URL, firefox)
	post(t, ann.Client, ann.url+"/devices/sign-in", "name", "ann")
	page := ann.follows(t)
	page.tells(t, "devices 1")
	demo.Signal(t, syscall.SIGTERM)
	if event, _, err := page.next(); !errors.Is(err, io.EOF) {
		t.Errorf("the stream has %q, %v, want its end", event, err)
	}
	if err := demo.Wait(t, time.Minute); err != nil {
		t.Error(err)
	}
	for _, key := range r.Keys(t) {
		if strings.HasSuffix(key, ".lock") {
			t.Errorf("the program has left %s", key)
		}
	}
}

// Signed out elsewhere, a user goes on as a guest, also with fetch, and with or without a new page. The second page
// says what has happened until the next sign-in, and the first one who is signed in.
func TestSignedOutElsewhere(t *testing.T) {
	t.Parallel()
	demo := demotest.Start(t)
	laptop, phone := newPerson(t, demo.URL, firefox), newPerson(t, demo.URL, iPhone)
	laptop.Transport = fetching{laptop.Transport}
	wants := func(path, want string) {
		t.Helper()
		if got := get(t, laptop.Client, laptop.url+path); got != want {
			t.Errorf("%s is %q, want %q", path, got, want)
		}
	}
	counts := func(want string) {
		t.Helper()
		if got := post(t, laptop.Client, laptop.url+"/incr"); got != want {
			t.Errorf("the counter is at %s, want %s", got, want)
		}
	}
	for _, p := range []person{laptop, phone} {
		post(t, p.Client, p.url+"/devices/sign-in", "name", "ann")
	}
	wants("/user", "ann")
	counts("1")
	counts("2")
	laptop.wantOver(t, false)

	post(t, phone.Client, phone.url+"/devices/end-others")
	counts("1") // at once, and in a new session
	wants("/user", "")
	laptop.wantOver(t, true)
	counts("2")
	laptop.wantOver(t, true)
	wants("/count", "2")

	post(t, laptop.Client, laptop.url+"/devices/sign-in", "name", "ann")
	laptop.wantOver(t, false)
	wants("/user", "ann")
	counts("3")
}

// A visitor who was never signed in, or has signed out, is not told of a lost session.
func TestNobodyIsToldOfASessionInVain(t *testing.T) {
	t.Parallel()
	demo := demotest.Start(t)
	ann := newPerson(t, demo.URL, firefox)
	post(t, ann.Client, ann.url+"/incr")
	post(t, ann.Client, ann.url+"/login") // a new ID for a guest
	ann.wantOver(t, false)
	post(t, ann.Client, ann.url+"/devices/sign-in", "name", "ann")
	post(t, ann.Client, ann.url+"/logout")
	ann.wantOver(t, false)
	post(t, ann.Client, ann.url+"/login")
	ann.wantOver(t, false)
}

// wantOver checks whether the page says that the user is not signed in any more.
func (p person) wantOver(t *testing.T, want bool) {
	t.Helper()
	if page := get(t, p.Client, p.url+"/devices"); strings.Contains(page, `id="over"`) != want {
		t.Errorf("want the notice: %v; the page is\n%s", want, page)
	}
}

// A fetching transport sends what a browser does for a script's fetch.
type fetching struct{ http.RoundTripper }

func (f fetching) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Sec-Fetch-Mode", "cors")
	r.Header.Set("Sec-Fetch-Dest", "empty")
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	return f.RoundTripper.RoundTrip(r)
}

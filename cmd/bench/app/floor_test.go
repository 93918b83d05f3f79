package app

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
)

// TestFloor has two visitors, one of whom comes to another process, too.
func TestFloor(t *testing.T) {
	b, err := openFloor(Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer b.close()
	handler := newHandler(b)
	call := func(method, target, cookie string) *httptest.ResponseRecorder {
		r := httptest.NewRequest(method, target, nil)
		if cookie != "" {
			r.Header.Set("Cookie", cookie)
		}
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		return w
	}
	var cookies []string
	for range 2 {
		w := call(http.MethodPost, "/incr", "")
		cookies = append(cookies, w.Header().Get("Set-Cookie"))
	}
	if cookies[0] == "" || cookies[0] == cookies[1] {
		t.Fatalf("the visitors' cookies are %q", cookies)
	}
	call(http.MethodPost, "/set?k", cookies[0])
	call(http.MethodPost, "/set?k", "session=of another process")
	for cookie, want := range map[string]string{cookies[0]: "2", cookies[1]: "1", "session=of another process": "1"} {
		w := call(http.MethodGet, "/size", cookie)
		if got := w.Body.String(); got != want || w.Header().Get("Set-Cookie") != "" {
			t.Errorf("%s has %s values, and the cookie %q: it must be %s and none", cookie, got, w.Header().Get("Set-Cookie"), want)
		}
	}
}

// TestFloorFindsOne has a visitor whose first requests are concurrent.
func TestFloorFindsOne(t *testing.T) {
	f := floor{visitors: make(map[string]*memory)}
	var found [64]*memory
	var group sync.WaitGroup
	for i := range found {
		group.Go(func() { found[i] = f.find("session=new") })
	}
	group.Wait()
	for i, m := range found {
		if m != found[0] {
			t.Fatalf("requests 0 and %d count in different places", i)
		}
	}
}

// TestProfile makes sure that a small session is as small as the tables say.
func TestProfile(t *testing.T) {
	text, err := json.Marshal(profile)
	if err != nil || len(text) != 100 || len(profile) != 5 {
		t.Errorf("%d values have %d bytes, error %v: it must be 5 and 100", len(profile), len(text), err)
	}
}

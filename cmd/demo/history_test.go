package main

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
)

// An operation is one request, with the cookie that it was sent with. Cookies
// are numbered by the test, 0 being the one that the session began with.
type operation struct {
	what   string // incr, count, login, logout
	cookie string
}

// A result is the answer.
type response struct {
	status int
	n      int    // of incr and count
	cookie string // the new one, of login
}

// A state is one session: the cookie that opens it, if any does, and its number.
type state struct {
	cookie string
	n      int
}

// model is what a session is to do, one request after the other. With a dead
// cookie the session is empty, and cannot be written to.
var model = porcupine.Model{
	// Each session has a history of its own; the first cookie names it.
	Init: func() any { return state{} },
	Step: func(before, input, output any) (bool, any) {
		s, op, got := before.(state), input.(operation), output.(response)
		if op.what == "begin" {
			return got.status == 204, state{cookie: got.cookie}
		}
		alive := op.cookie == s.cookie && s.cookie != ""
		switch op.what {
		case "incr":
			if !alive {
				return got.status == http.StatusConflict, s
			}
			s.n++
			return got.status == 200 && got.n == s.n, s
		case "count":
			if !alive {
				return got.status == 200 && got.n == 0, s
			}
			return got.status == 200 && got.n == s.n, s
		case "login":
			if !alive {
				return got.status == http.StatusConflict, s
			}
			return got.status == 204 && got.cookie != "", state{cookie: got.cookie, n: s.n}
		case "logout":
			if alive {
				s.cookie = ""
			}
			return got.status == 204, s
		}
		return false, s
	},
	Equal: func(a, b any) bool { return a == b },
	DescribeOperation: func(input, output any) string {
		op, got := input.(operation), output.(response)
		return fmt.Sprintf("%s %.8s -> %d %d %.8s", op.what, op.cookie, got.status, got.n, got.cookie)
	},
}

// Increments, reads, logins and logouts of a few sessions, at once and through
// two processes, are linearizable: there is an order of the requests, which
// agrees with when each began and ended, in which every answer is right.
//
// Reads are in mode ReadOnly, so this also shows that they never go back in time.
//
// Each lock does it, also those that do not lie beside the record.
func TestHistoriesAreLinearizable(t *testing.T) {
	t.Parallel()
	for lock, sessions := range map[string]int{lockSpin: 4, lockTimestamp: 1, lockLease: 1, lockRedlock: 1} {
		_, args := shared(t, lock)
		urls := []string{start(t, args...).url, start(t, args...).url}
		for range sessions {
			t.Run(lock, func(t *testing.T) {
				t.Parallel()
				checkHistory(t, urls)
			})
		}
	}
}

func checkHistory(t *testing.T, urls []string) {
	h := &history{t: t, urls: urls, began: time.Now(), client: &http.Client{Transport: newClient(t).Transport, Timeout: time.Minute}}
	h.do(0, operation{what: "begin"})
	var clients sync.WaitGroup
	for id := 1; id <= 5; id++ {
		clients.Go(func() {
			for range 30 {
				h.do(id, h.choose())
			}
		})
	}
	clients.Wait()
	verdict, info := porcupine.CheckOperationsVerbose(model, h.operations, time.Minute)
	if verdict != porcupine.Ok {
		path := t.ArtifactDir() + "/history.html"
		if err := porcupine.VisualizePath(model, info, path); err != nil {
			t.Error(err)
		}
		t.Fatalf("verdict %s; drawn in %s (kept with -artifacts)", verdict, path)
	}
}

// A history is what several clients did to one session.
type history struct {
	t      *testing.T
	urls   []string
	client *http.Client
	began  time.Time

	mu         sync.Mutex // guards the rest
	cookies    []string   // all that the session ever had
	operations []porcupine.Operation
}

// choose picks a request and one of the newest cookies, so that dead ones are
// tried, too.
func (h *history) choose() operation {
	h.mu.Lock()
	defer h.mu.Unlock()
	newest := h.cookies[max(0, len(h.cookies)-2):]
	op := operation{what: "incr", cookie: newest[rand.IntN(len(newest))]}
	switch n := rand.IntN(100); {
	case n < 40:
		op.what = "count"
	case n < 48:
		op.what = "login"
	case n < 49:
		op.what = "logout"
	}
	return op
}

// do makes a request and records it.
func (h *history) do(client int, op operation) {
	method, path := http.MethodPost, "/"+op.what
	switch op.what {
	case "count":
		method = http.MethodGet
	case "begin":
		path = "/reset"
	}
	req, err := http.NewRequest(method, h.urls[rand.IntN(len(h.urls))]+path, nil)
	if err != nil {
		h.t.Error(err)
		return
	}
	if op.cookie != "" {
		req.Header.Set("Cookie", op.cookie)
	}
	call := time.Since(h.began)
	res, err := h.client.Do(req)
	if err != nil {
		h.t.Error(err)
		return
	}
	body, err := io.ReadAll(res.Body)
	res.Body.Close()
	if err != nil {
		h.t.Error(err)
	}
	got := response{status: res.StatusCode}
	if res.StatusCode == 200 {
		got.n, _ = strconv.Atoi(strings.TrimSpace(string(body))) // anything else is 0, and wrong
	}
	if cookies := res.Cookies(); len(cookies) > 0 && cookies[0].MaxAge >= 0 {
		got.cookie = cookies[0].Name + "=" + cookies[0].Value
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.operations = append(h.operations, porcupine.Operation{
		ClientId: client, Input: op, Call: int64(call), Output: got, Return: int64(time.Since(h.began)),
	})
	if got.cookie != "" {
		h.cookies = append(h.cookies, got.cookie)
	}
}

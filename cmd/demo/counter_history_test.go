package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
)

// A reading is what the answer to /incr or /count says. Without an answer, nobody
// knows whether the request was done, or when it will have been.
type reading struct {
	answered bool
	n        int
}

// counter is what the number in a session is to do, one request after the other.
var counter = porcupine.Model{
	Init: func() any { return 0 },
	Step: func(before, input, output any) (bool, any) {
		n, got := before.(int), output.(reading)
		if input == "incr" {
			n++
		}
		return got.n == n, n
	},
	Equal: func(a, b any) bool { return a == b },
	DescribeOperation: func(input, output any) string {
		return fmt.Sprintf("%s -> %+v", input, output)
	},
}

// settled says of each write without an answer what it did, or leaves it out: it was
// done at any time after it was sent, or never.
//
// The answers tell which numbers were given to nobody, up to the last that was seen.
// Those are what such writes made. If there is any order in which all answers are
// right, there is one in which the writes that were sent first made them, in turn.
// Without that, a checker would have to try all combinations.
func settled(operations []porcupine.Operation) (known []porcupine.Operation) {
	given, last := make(map[int]bool), 0
	var open []porcupine.Operation
	for _, op := range operations {
		got := op.Output.(reading)
		if !got.answered {
			open = append(open, op)
			continue
		}
		known = append(known, op)
		given[got.n] = given[got.n] || op.Input == "incr"
		last = max(last, got.n)
	}
	slices.SortFunc(open, func(a, b porcupine.Operation) int { return cmp.Compare(a.Call, b.Call) })
	for n := 1; n <= last && len(open) > 0; n++ {
		if !given[n] {
			open[0].Output = reading{n: n}
			known, open = append(known, open[0]), open[1:]
		}
	}
	return known
}

// A counterHistory is what many clients at once do to the number in one session.
type counterHistory struct {
	t      *testing.T
	client *http.Client
	cookie string
	began  time.Time
	reads  []string // paths that read

	writes, asked, silent atomic.Int64 // answered /incr, reads sent, requests without an answer

	mu         sync.Mutex // guards the rest
	urls       []string   // of the processes that are alive
	operations []porcupine.Operation
}

func newCounterHistory(t *testing.T, urls ...string) *counterHistory {
	transport := &http.Transport{MaxIdleConnsPerHost: 100}
	t.Cleanup(transport.CloseIdleConnections)
	h := &counterHistory{t: t, client: &http.Client{Transport: transport, Timeout: time.Minute},
		began: time.Now(), urls: urls, reads: []string{"/count"}}
	res, err := h.client.Post(urls[0]+"/reset", "", nil)
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	if len(res.Cookies()) != 1 {
		t.Fatalf("the session began with %s", res.Status)
	}
	h.cookie = res.Cookies()[0].Name + "=" + res.Cookies()[0].Value
	return h
}

// run lets clients make requests, of which one in readEvery reads, until ctx ends.
// Each then makes one more, so that the history shows what is left.
func (h *counterHistory) run(ctx context.Context, clients, readEvery int) {
	var all sync.WaitGroup
	for id := range clients {
		all.Go(func() {
			for ctx.Err() == nil {
				if rand.IntN(readEvery) == 0 {
					h.do(id, http.MethodGet, h.reads[rand.IntN(len(h.reads))])
				} else {
					h.do(id, http.MethodPost, "/incr")
				}
			}
		})
	}
	all.Wait()
	h.do(0, http.MethodGet, h.reads[0])
}

// without makes all further requests go elsewhere.
func (h *counterHistory) without(url string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	var left []string
	for _, u := range h.urls {
		if u != url {
			left = append(left, u)
		}
	}
	h.urls = left
}

func (h *counterHistory) anyURL() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.urls[rand.IntN(len(h.urls))]
}

// do makes a request and records it.
func (h *counterHistory) do(client int, method, path string) {
	req, err := http.NewRequest(method, h.anyURL()+path, nil)
	if err != nil {
		h.t.Error(err)
		return
	}
	req.Header.Set("Cookie", h.cookie)
	call := time.Since(h.began)
	got, back := h.ask(req), time.Since(h.began)
	op := porcupine.Operation{ClientId: client, Input: "incr", Call: int64(call), Output: got, Return: int64(back)}
	if method == http.MethodGet {
		op.Input = "count"
		h.asked.Add(1)
	}
	switch {
	case !got.answered && op.Input == "count":
		h.silent.Add(1)
		return // it did nothing, whenever it was done
	case !got.answered:
		h.silent.Add(1)
		op.Return = math.MaxInt64
	case op.Input == "incr":
		h.writes.Add(1)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if !got.answered { // a client makes one request at a time, and this one does not end
		op.ClientId = 1000 + len(h.operations)
	}
	h.operations = append(h.operations, op)
}

// ask returns the answer. A 503 is none: it leaves open what was done.
func (h *counterHistory) ask(req *http.Request) reading {
	res, err := h.client.Do(req)
	if err != nil {
		return reading{}
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	switch {
	case err != nil, res.StatusCode == http.StatusServiceUnavailable:
		return reading{}
	case res.StatusCode != http.StatusOK:
		h.t.Errorf("%s %s: %s %s", req.Method, req.URL.Path, res.Status, body)
	}
	n, err := strconv.Atoi(strings.TrimSpace(string(body)))
	if err != nil {
		h.t.Error(err)
	}
	return reading{answered: true, n: n}
}

// check fails the test unless the history is linearizable.
func (h *counterHistory) check() {
	h.t.Helper()
	h.t.Logf("%d writes, %d reads, %d without an answer", h.writes.Load(), h.asked.Load(), h.silent.Load())
	verdict, info := porcupine.CheckOperationsVerbose(counter, settled(h.operations), time.Minute)
	if verdict != porcupine.Ok {
		path := h.t.ArtifactDir() + "/history.html"
		if err := porcupine.VisualizePath(counter, info, path); err != nil {
			h.t.Error(err)
		}
		h.t.Fatalf("verdict %s; drawn in %s (kept with -artifacts)", verdict, path)
	}
}

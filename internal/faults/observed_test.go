package faults

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/demotest"
	"github.com/a2139e8d/latchkey/internal/faults/rig"
	"github.com/a2139e8d/latchkey/middleware"
)

// Observers are told what visitors see, while processes are killed and stopped, and Redis is paused and full. One
// of the observers misbehaves.
func TestObserversAreToldTheTruth(t *testing.T) {
	a := &observed{next: http.Transport{DisableKeepAlives: true}}
	const none = -1 // stage starts none: observed.start does
	a.scene = stage(t, "processes killed and stopped, Redis paused and full, observers", "P17: each request is told once, as its visitor saw it",
		setting{logins: true, apart: true, demos: none, visitors: 6, transport: a})
	for range 3 {
		a.start()
	}
	a.run(func(ctx context.Context) {
		for range unlessShort(4, 1) {
			a.redis.Pause(t)
			pause(ctx, lease+lease/2)
			a.redis.Resume(t)
			pause(ctx, lease)

			stopped := a.demos[len(a.demos)-1]
			stopped.Signal(t, syscall.SIGSTOP)
			pause(ctx, lease+lease/2)
			stopped.Signal(t, syscall.SIGCONT)

			a.redis.Fill(t)
			pause(ctx, lease/2)
			a.redis.Empty(t)

			killed := a.demos[0]
			a.demos, a.files = a.demos[1:], a.files[1:]
			a.close(killed)
			killed.Kill()
			a.start()
			a.files = append(a.files, a.demos[len(a.demos)-1].Files(t))
			pause(ctx, lease/2)
		}
	})
	a.judgeEvents()
}

// An observed scene has processes whose observers write down what they are told.
type observed struct {
	*scene
	processes []*observedProcess
	next      http.Transport // keeps no connection: otherwise it might send a request again

	mu   sync.Mutex // guards sent
	sent []*sentRequest

	pairs, early int // see ordered
}

type observedProcess struct {
	*demotest.Demo
	events string // a file
}

// A sentRequest is a request of a visitor.
type sentRequest struct {
	number, host string
	path         string
	sent, back   time.Time
	canceled     bool
	status       int    // 0: there is no response
	body         string // of the response
}

func (a *observed) start() {
	p := &observedProcess{events: filepath.Join(a.TempDir(), "events")}
	p.Demo = clusterApp.Start(a.T, "-client", "redigo", "-redis", a.redis.Addr, "-lease", a.lease.String(),
		"-lock-wait", lockWait.String(), "-events", p.events)
	a.processes = append(a.processes, p)
	a.open(p.Demo)
}

// RoundTrip numbers and records the visitors' requests.
func (a *observed) RoundTrip(r *http.Request) (*http.Response, error) {
	one := &sentRequest{host: r.URL.Host, path: r.Method + " " + r.URL.Path}
	a.mu.Lock()
	a.sent = append(a.sent, one)
	one.number = strconv.Itoa(len(a.sent))
	a.mu.Unlock()
	r = r.Clone(r.Context())
	r.Header.Set(rig.NumberHeader, one.number)
	one.sent = time.Now()
	res, err := a.next.RoundTrip(r)
	var body []byte
	if err == nil {
		body, err = io.ReadAll(res.Body)
		_ = res.Body.Close()
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	one.back, one.canceled = time.Now(), r.Context().Err() != nil
	if err != nil {
		return nil, err
	}
	one.status, one.body = res.StatusCode, strings.TrimSpace(string(body))
	res.Body = io.NopCloser(bytes.NewReader(body))
	return res, nil
}

// A toldRequest is a request with what the observers of its process were told about it.
type toldRequest struct {
	*sentRequest
	*middleware.RequestEvent
	process   *observedProcess
	events    int // how many RequestEvents there are
	exchanges []*middleware.ExchangeEvent
	began     int // SessionEvents that say "began"
}

// toldRequests ends the processes, and reads what their observers were told. Before a process ends, it tells all
// events of its requests.
func (a *observed) toldRequests() map[string]*toldRequest {
	a.Helper()
	byHost := make(map[string]*observedProcess)
	for _, p := range a.processes {
		byHost[strings.TrimPrefix(p.URL, "http://")] = p
		if p.Alive() {
			p.Signal(a.T, syscall.SIGTERM)
			if err := p.Wait(a.T, 20*time.Second); err != nil {
				a.Errorf("a process ended with %v", err)
			}
		}
	}
	requests := make(map[string]*toldRequest)
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, s := range a.sent {
		requests[s.number] = &toldRequest{sentRequest: s, process: byHost[s.host]}
	}
	for _, p := range a.processes {
		all, err := rig.ReadTold(p.events)
		if err != nil {
			a.Fatal(err)
		}
		for _, one := range all {
			a.assign(one, p, requests)
		}
	}
	return requests
}

// assign gives an event to its request.
func (a *observed) assign(one rig.Told, from *observedProcess, requests map[string]*toldRequest) {
	a.Helper()
	r := requests[one.Number]
	switch {
	case one.Number == "" && one.Request == nil: // an extended lease, for example, and its exchange
	case r == nil || r.process != from:
		a.Errorf("an event of request %q, which was not sent to this process", one.Number)
	case one.Request != nil:
		r.RequestEvent = one.Request
		r.events++
	case one.Exchange != nil:
		r.exchanges = append(r.exchanges, one.Exchange)
	case one.Session.What == "began":
		r.began++
	}
}

package world

import (
	"context"
	"errors"
	"net/http"
	"runtime"
	"strings"
	"time"

	"github.com/a2139e8d/latchkey/internal/simulation/history"
	"github.com/a2139e8d/latchkey/internal/simulation/plan"
	"github.com/a2139e8d/latchkey/middleware"
	"github.com/a2139e8d/latchkey/session"
)

var is = errors.Is

// A call is a request as the application handles it.
type call struct {
	plan.Request
	world     *World
	process   *process
	seen      *history.Request
	session   *session.Session
	failure   error         // why the handler did not respond
	durable   time.Duration // when a commit by the handler had succeeded
	runs      int           // of its handler
	panics    bool          // the handler panics in this run
	answer    *response
	disturbed bool // an observer has blocked it, or ended its goroutine
}

type callKey struct{}

func callOf(r *http.Request) *call { return r.Context().Value(callKey{}).(*call) }

// modeOf is Options.Mode.
func modeOf(r *http.Request) middleware.Mode {
	switch callOf(r).Mode {
	case plan.ReadOnly:
		return middleware.ReadOnly
	case plan.Optimistic:
		return middleware.Optimistic
	case plan.Lazy, plan.LazyElsewhere:
		return middleware.Lazy
	}
	return middleware.Exclusive
}

// intended is the value with which handlers panic.
const intended = "as it was planned"

// application is the handler.
func application(w http.ResponseWriter, r *http.Request) {
	c := callOf(r)
	c.runs++
	c.again()
	if !c.open(w, r) {
		return
	}
	c.work(r.Context(), c.Before)
	if c.Action == plan.Reopen && !c.reopen(w, r) {
		return
	}
	if c.Action == plan.EndOthers {
		c.endOthers(r.Context())
	}
	c.change()
	if !c.proceed(w, r) {
		return
	}
	c.sealing()
	w.WriteHeader(http.StatusOK)
}

// open gets the session and records its content.
func (c *call) open(w http.ResponseWriter, r *http.Request) bool {
	ctx := r.Context()
	var err error
	switch c.Mode {
	case plan.Lazy:
		c.seen.Asked = c.world.now()
		c.session, err = session.Start(ctx)
	case plan.LazyElsewhere:
		c.seen.Asked = c.world.now()
		orExit(aside(func() { c.session, err = session.Start(ctx) }))
	default:
		c.session = session.FromContext(ctx)
	}
	if err != nil {
		c.failure = err
		w.WriteHeader(middleware.Status(err))
		return false
	}
	c.look()
	return true
}

// look records the content of the session.
func (c *call) look() {
	seen := c.seen
	seen.Saw, _ = session.Get[[]int](c.session, "log")
	seen.Cart, _ = session.Get[int](c.session, "cart")
	seen.New = c.session.IsNew()
	seen.ID, seen.User = c.session.ID(), c.session.User()
	seen.Open = c.world.now()
	if seen.Guest != "" && (seen.New || seen.ID == seen.Guest) {
		seen.Cookie = seen.Guest // it did not find the member's session
	}
	c.note("has the session", seen.ID, seen.Saw)
}

// work takes some time.
func (c *call) work(ctx context.Context, d time.Duration) {
	if d <= 0 {
		return
	}
	if !c.Heeds {
		elapse(d)
		return
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// bulk is larger than a commit carries inline, and smaller than the limit.
const bulk = 3 << 10

// change is what the handler does to the session.
func (c *call) change() {
	s, seen := c.session, c.seen
	if c.Action == plan.Look {
		return
	}
	list, found := seen.Saw, seen.Saw
	switch c.Action {
	case plan.Clear:
		s.Clear()
		list, found = nil, nil
	case plan.Discard:
		found = c.discard()
	}
	seen.Effect = history.Write
	seen.Wrote = append(list[:len(list):len(list)], seen.Number)
	s.Set("log", append(found[:len(found):len(found)], seen.Number))
	if s.Delete("bulk"); c.Large {
		s.Set("bulk", strings.Repeat("x", bulk))
	}
	seen.Renews = renews(c.Request)
	if seen.Puts = seen.Cart; !seen.Renews { // otherwise the cart stays as it is
		seen.Puts = seen.Number
		s.Set("cart", seen.Number)
	}
	if seen.Renews {
		if c.Action == plan.Login {
			seen.LogsIn = userName(c.User)
			s.Login(userName(c.User))
		} else {
			s.Renew()
		}
		if !seen.New {
			seen.Effect = history.Renew
		}
	}
	switch c.Action {
	case plan.Destroy:
		s.Destroy()
		seen.Effect, seen.Destroys = history.Destroy, true
		if seen.New {
			seen.Effect = history.Nothing // there is nothing to end
		}
	case plan.Unencodable:
		s.Set("channel", make(chan int))
	case plan.TooLarge:
		s.Set("padding", strings.Repeat("x", c.world.plan.Options.MaxBytes))
	case plan.Panic:
		c.panics = true
		seen.Seal = c.world.now()
		panic(intended)
	}
}

// discard changes everything that can be changed, discards the changes, and returns the list that is
// left.
func (c *call) discard() []int {
	s := c.session
	s.Clear()
	s.Set("log", []int{-c.seen.Number}) // no request may ever see that
	s.Set("channel", make(chan int))
	if c.Number%2 == 0 {
		s.Renew()
	} else {
		s.Destroy()
	}
	s.Discard()
	list, _ := session.Get[[]int](s, "log")
	return list
}

// proceed does what the handler does after its change and before its response. It reports whether the
// handler goes on.
func (c *call) proceed(w http.ResponseWriter, r *http.Request) bool {
	ctx := r.Context()
	var err error
	switch c.Action {
	case plan.Early, plan.Late, plan.Crumble:
		c.sealing()
		err = c.session.Commit(ctx)
	case plan.Elsewhere:
		c.sealing()
		orExit(aside(func() { err = c.session.Commit(ctx) }))
	case plan.Flush:
		c.sealing()
		w.WriteHeader(http.StatusOK)
		_, _ = w.Write([]byte("the beginning"))
		err = http.NewResponseController(w).Flush()
	}
	if err == nil && c.seen.Seal > 0 {
		c.durable = c.world.now()
	}
	switch {
	case err != nil:
		c.failure = err
		return false // the response is the error
	case c.Action == plan.Late:
		c.session.Set("log", append(c.seen.Wrote[:len(c.seen.Wrote):len(c.seen.Wrote)], -c.seen.Number)) // no request may ever see that
	case c.Action == plan.Crumble:
		panic(intended)
	}
	c.work(ctx, c.After)
	return true
}

// sealing records that the commit begins.
func (c *call) sealing() {
	if c.seen.Seal == 0 {
		c.seen.Seal = c.world.now()
	}
}

// aside runs f in another goroutine and waits for it. It returns false if f has called runtime.Goexit.
func aside(f func()) (returned bool) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
		returned = true
	}()
	<-done
	return returned
}

// orExit ends the goroutine of a handler if the other one, which it depends on, was ended.
func orExit(returned bool) {
	if !returned {
		runtime.Goexit()
	}
}

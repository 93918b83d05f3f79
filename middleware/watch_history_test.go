package middleware_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/history"
	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/middleware"
	"github.com/a2139e8d/latchkey/session"
	"github.com/a2139e8d/latchkey/store"
)

// P16: among random logins, logouts, new IDs, and ends of one session and of all, in two processes, each stream ends
// within two seconds of its session's end. No stream ends whose session goes on.
func TestHistoriesOfStreams(t *testing.T) {
	inBubble(t, func(t *testing.T, r *redistest.Server) {
		p := &streamed{T: t, closing: make(chan struct{})}
		for range 2 {
			var own *site
			own = newSiteOn(t, store.New(r.Pool(t, 8), steady), middleware.Options{}, p.routes(func() *middleware.Sessions { return own.sessions }))
			p.sites = append(p.sites, own)
		}
		over, stop := context.WithTimeout(t.Context(), time.Minute)
		defer stop()
		var all sync.WaitGroup
		for range 6 {
			v := newVisitor(t).everywhere()
			v.Timeout = 0 // streams stay for longer
			all.Go(func() { p.act(over, v) })
			all.Go(func() { p.write(over, v) })
		}
		all.Go(func() { p.administer(over) })
		all.Wait()
		// By chance the sessions of all streams may end. The session of this stream goes on.
		last := newVisitor(t)
		last.Timeout = 0
		p.streams.Go(func() { last.get(p.site().URL + "/stream") })
		redistest.Elapse(promptly)
		if err := p.Check(func(returned time.Time) time.Time { return returned.Add(promptly) }); err != nil {
			t.Error(err)
		}
		close(p.closing)
		p.streams.Wait()
		if ended, other := p.Counts(); ended < 20 || other == 0 {
			t.Errorf("%d streams have ended with their session, and %d have not", ended, other)
		}
	})
}

// A streamed is a history, and what its visitors do.
type streamed struct {
	*testing.T
	history.Streams
	sites   []*site
	names   atomic.Int32 // of sessions so far
	streams sync.WaitGroup
	closing chan struct{} // streams that are left end
}

func (p *streamed) site() *site { return p.sites[rand.IntN(len(p.sites))] }

// act makes requests that change the session, one after the other, and opens streams.
func (p *streamed) act(ctx context.Context, v *visitor) {
	for ctx.Err() == nil {
		redistest.Elapse(rand.N(1500 * time.Millisecond)) // also longer than it takes until a stream is watched
		url := p.site().URL
		switch n := rand.IntN(20); {
		case n < 8:
			p.streams.Go(func() { v.get(url + "/stream") })
		case n < 11:
			v.get(url + "/renew")
		case n < 16:
			v.get(url + "/login/" + anybody())
		case n < 18:
			v.get(url + "/logout")
		case n < 19:
			v.get(url + "/end/all")
		default:
			v.get(url + "/end/this")
		}
	}
}

// write makes other requests of the same visitor at the same time.
func (p *streamed) write(ctx context.Context, v *visitor) {
	for ctx.Err() == nil {
		redistest.Elapse(rand.N(time.Second))
		v.get(p.site().URL + "/add")
	}
}

// administer ends all sessions of users, from outside.
func (p *streamed) administer(ctx context.Context) {
	for ctx.Err() == nil {
		redistest.Elapse(rand.N(10 * time.Second))
		user, called := anybody(), time.Now()
		_, err := p.site().sessions.EndAll(context.Background(), user)
		p.EndAll(user, called, err == nil)
	}
}

func anybody() string { return []string{"ann", "bob"}[rand.IntN(2)] }

// name returns the name of the session, which its first request has given it.
func (p *streamed) name(s *session.Session) string {
	name, _ := session.Get[string](s, "name")
	if name == "" {
		name = fmt.Sprint(p.names.Add(1))
		s.Set("name", name)
	}
	return name
}

// routes are what visitors ask for. Each handler commits, so that it knows what was saved.
func (p *streamed) routes(sessions func() *middleware.Sessions) *http.ServeMux {
	mux := http.NewServeMux()
	handle(mux, "/add", func(s *session.Session, _ http.ResponseWriter, _ *http.Request) {
		p.name(s)
		add(s)
	})
	handle(mux, "/renew", func(s *session.Session, _ http.ResponseWriter, _ *http.Request) {
		p.name(s)
		s.Renew()
	})
	handle(mux, "/stream", p.stream)
	handle(mux, "/login/{user}", p.login)
	handle(mux, "/logout", func(s *session.Session, _ http.ResponseWriter, r *http.Request) {
		name, called := p.name(s), time.Now()
		s.Destroy()
		p.End(name, called, s.Commit(r.Context()) == nil)
	})
	handle(mux, "/end/this", func(s *session.Session, _ http.ResponseWriter, r *http.Request) {
		name, called := p.name(s), time.Now()
		p.End(name, called, sessions().End(r.Context(), s.ID()) == nil)
	})
	handle(mux, "/end/all", func(s *session.Session, _ http.ResponseWriter, r *http.Request) {
		if user, called := s.User(), time.Now(); user != "" {
			_, err := sessions().EndAll(r.Context(), user)
			p.EndAll(user, called, err == nil)
		}
	})
	return mux
}

// login logs a user in. If the user is another one, that ends the session of the user before.
func (p *streamed) login(s *session.Session, _ http.ResponseWriter, r *http.Request) {
	user, was, name, called := r.PathValue("user"), s.User(), p.name(s), time.Now()
	before := name
	s.Login(user)
	if was != "" && was != user {
		s.Delete("name")
		name = p.name(s)
	}
	done := s.Commit(r.Context()) == nil
	if name != before {
		p.End(before, called, done)
	}
	p.Login(name, user, called, done)
}

// stream stays until its context ends.
func (p *streamed) stream(s *session.Session, w http.ResponseWriter, r *http.Request) {
	name := p.name(s)
	if s.Commit(r.Context()) != nil {
		return // it was ended under this request
	}
	if http.NewResponseController(w).Flush() != nil {
		return
	}
	stream := p.Open(name)
	select {
	case <-r.Context().Done():
		stream.Close(context.Cause(r.Context()) == session.ErrEnded)
	case <-p.closing:
		stream.Close(false)
	}
}

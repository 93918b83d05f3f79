package middleware_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/fakeredis"
	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/middleware"
	"github.com/a2139e8d/latchkey/session"
	"github.com/a2139e8d/latchkey/store"
)

// P16: the context of an open request ends within two seconds of its session's end.
const promptly = 2 * time.Second

// A stay is a request that stays until its context ends or it is set free.
type stay struct {
	how   string
	ended time.Time // when the context ended
	cause error
}

// stays are the requests to /stay/… that are under way.
type stays struct {
	begun chan string
	free  chan struct{}
	over  chan stay
}

func newStays() *stays {
	return &stays{make(chan string), make(chan struct{}), make(chan stay, 20)}
}

// wait is the end of each of these requests: it waits until the context ends, or until the request is set free.
func (st *stays) wait(how string, r *http.Request) {
	st.begun <- how
	select {
	case <-r.Context().Done():
	case <-st.free:
	}
	st.over <- stay{how, time.Now(), context.Cause(r.Context())}
}

// ways are the ways in which a request may have its session open.
var ways = map[string]struct {
	mode middleware.Mode
	open func(*session.Session, http.ResponseWriter, *http.Request) error
}{
	"a stream": {middleware.Exclusive, func(_ *session.Session, w http.ResponseWriter, _ *http.Request) error {
		return http.NewResponseController(w).Flush()
	}},
	"after Commit": {middleware.Exclusive, func(s *session.Session, _ http.ResponseWriter, r *http.Request) error {
		return s.Commit(r.Context())
	}},
	"hijacked": {middleware.Exclusive, func(_ *session.Session, w http.ResponseWriter, r *http.Request) error {
		conn, _, err := http.NewResponseController(w).Hijack()
		if err == nil {
			context.AfterFunc(r.Context(), func() { conn.Close() }) // which the handler's return ends, too
		}
		return err
	}},
	"reopened and committed": {middleware.Exclusive, func(s *session.Session, _ http.ResponseWriter, r *http.Request) error {
		return errors.Join(s.Commit(r.Context()), s.Reopen(r.Context()), s.Commit(r.Context()))
	}},
	"read only":  {middleware.ReadOnly, func(*session.Session, http.ResponseWriter, *http.Request) error { return nil }},
	"optimistic": {middleware.Optimistic, func(*session.Session, http.ResponseWriter, *http.Request) error { return nil }},
	"lazy": {middleware.Lazy, func(s *session.Session, _ http.ResponseWriter, r *http.Request) error {
		return s.Commit(r.Context())
	}},
	"holding it": {middleware.Exclusive, func(*session.Session, http.ResponseWriter, *http.Request) error { return nil }},
}

// stayMode is the mode of each way.
func stayMode(r *http.Request) middleware.Mode {
	return ways[strings.TrimPrefix(r.URL.Path, "/stay/")].mode
}

// live are two processes with one visitor, who has a session and requests that stay in the first process.
type live struct {
	*testing.T
	*redistest.Server
	here, there *site
	visitor     *visitor
	stays       *stays
	open        int // requests that stay
}

func newLive(t *testing.T, r *redistest.Server, o middleware.Options, st store.Options) *live {
	t.Helper()
	l := &live{T: t, Server: r, stays: newStays()}
	o.Mode = stayMode
	mux := users(func() *middleware.Sessions { return l.there.sessions })
	mux.HandleFunc("/stay/{how}", func(w http.ResponseWriter, r *http.Request) {
		s, err := session.Start(r.Context())
		must(t, err)
		how := r.PathValue("how")
		must(t, ways[how].open(s, w, r))
		l.stays.wait(how, r)
	})
	handle(mux, "/remember", func(s *session.Session, _ http.ResponseWriter, _ *http.Request) { s.Remember(3 * time.Minute) })
	l.here = newSiteOn(t, store.New(r.Pool(t, 8), st), o, mux)
	l.there = newSiteOn(t, store.New(r.Pool(t, 8), st), o, mux)
	l.visitor = newVisitor(t).everywhere()
	l.visitor.Timeout = 0 // the requests stay for longer
	l.visitor.get(l.there.URL+"/add").want(t, 200, "1")
	return l
}

// id returns the present ID of the visitor's session.
func (l *live) id() string { return l.visitor.get(l.there.URL + "/id").body }

// stay opens a request in each way, except the ways in but.
func (l *live) stay(but ...string) {
	l.Helper()
	for how := range ways {
		if how != "holding it" && !strings.Contains(strings.Join(but, ","), how) {
			l.visitor.start(l.here.URL + "/stay/" + strings.ReplaceAll(how, " ", "%20"))
			<-l.stays.begun
			l.open++
		}
	}
	if !strings.Contains(strings.Join(but, ","), "holding it") { // last, since the others would wait
		l.visitor.start(l.here.URL + "/stay/holding%20it")
		<-l.stays.begun
		l.open++
	}
}

// wantEnded checks that all these requests end promptly, since their session has ended at that time.
func (l *live) wantEnded(at time.Time) {
	l.Helper()
	for range l.open {
		s := <-l.stays.over
		if after := s.ended.Sub(at); after > promptly || after < 0 || s.cause != session.ErrEnded {
			l.Errorf("%s: the context ended %v after the session, because of %v", s.how, after, s.cause)
		}
	}
	l.open = 0
}

// wantOpen checks that all these requests go on.
func (l *live) wantOpen() {
	l.Helper()
	redistest.Elapse(5 * time.Second)
	select {
	case s := <-l.stays.over:
		l.Errorf("%s: the context has ended because of %v", s.how, s.cause)
		l.open--
	default:
	}
}

// freeAll lets the requests that are left return.
func (l *live) freeAll() {
	close(l.stays.free)
	for range l.open {
		<-l.stays.over
	}
}

// P16: whatever ends a session, in whichever process, the contexts of its requests end.
func TestTheEndOfASessionEndsItsRequests(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		options middleware.Options
		user    bool   // the session is a user's
		but     string // the way that keeps this from happening: a holder
		end     func(l *live) (at time.Time)
	}{
		"Destroy by another request": {but: "holding it", end: func(l *live) time.Time {
			l.visitor.get(l.there.URL+"/logout").want(l.T, 200, "")
			return time.Now()
		}},
		"Destroy of a user's session": {user: true, but: "holding it", end: func(l *live) time.Time {
			l.visitor.get(l.there.URL+"/logout").want(l.T, 200, "")
			return time.Now()
		}},
		"End": {end: func(l *live) time.Time {
			must(l.T, l.there.sessions.End(l.Context(), l.readID()))
			return time.Now()
		}},
		"EndAll": {user: true, end: func(l *live) time.Time {
			n, err := l.there.sessions.EndAll(l.Context(), "ann")
			if n != 1 || err != nil {
				l.Errorf("EndAll = %d, %v", n, err)
			}
			return time.Now()
		}},
		"EndAll of all others": {user: true, end: func(l *live) time.Time {
			other := newVisitor(l.T).everywhere()
			other.get(l.there.URL+"/login/ann").want(l.T, 200, "")
			other.get(l.there.URL+"/end/others").want(l.T, 200, "1")
			return time.Now()
		}},
		"too many logins": {user: true, options: middleware.Options{MaxSessions: 1}, end: func(l *live) time.Time {
			newVisitor(l.T).get(l.there.URL+"/login/ann").want(l.T, 200, "")
			return time.Now()
		}},
		"the idle timeout": {options: middleware.Options{TTL: 5 * time.Minute}, but: "holding it", end: func(l *live) time.Time {
			at := time.Now().Add(5 * time.Minute)
			redistest.Elapse(time.Until(at))
			return at
		}},
		"the absolute timeout": {options: middleware.Options{TTL: 5 * time.Minute, Lifetime: 10 * time.Minute}, user: true, but: "holding it", end: func(l *live) time.Time {
			began := time.Now()
			for range 3 {
				redistest.Elapse(3 * time.Minute)
				l.visitor.get(l.there.URL+"/add").want(l.T, 200, "*")
			}
			at := began.Add(10 * time.Minute)
			redistest.Elapse(time.Until(at))
			return at
		}},
		"the end that Remember has set": {options: middleware.Options{TTL: 5 * time.Minute}, but: "holding it", end: func(l *live) time.Time {
			l.visitor.get(l.there.URL+"/remember").want(l.T, 200, "")
			at := time.Now().Add(3 * time.Minute)
			redistest.Elapse(time.Until(at))
			return at
		}},
		"a key that was deleted": {end: func(l *live) time.Time {
			l.Do(l.T, "DEL", recordOf(l.readID()))
			return time.Now()
		}},
	} {
		inFakeTime(t, name, func(t *testing.T, r *redistest.Server) {
			for _, after := range []time.Duration{0, 1100 * time.Millisecond, 30 * time.Second} { // the requests are that old
				if name != "the end that Remember has set" && after != 0 && strings.Contains(name, "timeout") {
					continue
				}
				l := newLive(t, r, test.options, steady)
				if test.user {
					l.visitor.get(l.there.URL+"/login/ann").want(t, 200, "")
				}
				l.stay(test.but)
				redistest.Elapse(after)
				l.wantEnded(test.end(l))
				r.Do(t, "FLUSHALL")
			}
		})
	}
}

// readID is like ID, for a session that is held.
func (l *live) readID() string {
	for _, key := range l.Keys(l.T) {
		if !strings.Contains(key, ".l") && !strings.Contains(key, ".user") {
			return strings.NewReplacer("latchkey:{", "", "}:", ".", "}", "").Replace(key)
		}
	}
	l.Fatal("there is no session")
	return ""
}

// P16: a request that begins a session is watched from its first commit on.
func TestANewSessionIsWatched(t *testing.T) {
	inBubble(t, func(t *testing.T, r *redistest.Server) {
		stays, ids := newStays(), make(chan string, 1)
		s := siteWith(t, r, middleware.Options{}, "/begin", func(s *session.Session, w http.ResponseWriter, r *http.Request) {
			add(s)
			must(t, http.NewResponseController(w).Flush())
			ids <- s.ID()
			stays.wait("a new session", r)
		})
		done := newVisitor(t).start(s.URL + "/begin")
		<-stays.begun
		must(t, s.sessions.End(t.Context(), <-ids))
		at := time.Now()
		if over := <-stays.over; over.cause != session.ErrEnded || over.ended.Sub(at) > promptly {
			t.Errorf("the context ended %v later, because of %v", over.ended.Sub(at), over.cause)
		}
		<-done
	})
}

// P16: a stream can say why it ends: what it writes after the end still reaches the client.
func TestAStreamSaysWhyItEnds(t *testing.T) {
	inBubble(t, func(t *testing.T, r *redistest.Server) {
		ids := make(chan string)
		s := siteWith(t, r, middleware.Options{}, "/events", func(s *session.Session, w http.ResponseWriter, r *http.Request) {
			_, _ = io.WriteString(w, "data: hello\n\n")
			must(t, http.NewResponseController(w).Flush())
			ids <- s.ID()
			<-r.Context().Done()
			if context.Cause(r.Context()) == session.ErrEnded {
				_, _ = io.WriteString(w, "event: logout\ndata:\n\n")
			}
		})
		stream := s.visitor(t).start(s.URL + "/events")
		must(t, s.sessions.End(t.Context(), <-ids))
		(<-stream).want(t, 200, "data: hello\n\nevent: logout\ndata:")
	})
}

// P16: Contexts that are derived from the handler's context end with it, for the same cause: the context of an
// http.TimeoutHandler inside, and that of an Update. A Reopen says why it fails.
func TestWhatIsDerivedFromTheContextEnds(t *testing.T) {
	inBubble(t, func(t *testing.T, r *redistest.Server) {
		var s *site
		mux := app()
		handle(mux, "/derived", func(own *session.Session, w http.ResponseWriter, req *http.Request) {
			must(t, own.Commit(req.Context()))
			causes := make(chan error, 1)
			http.TimeoutHandler(http.HandlerFunc(func(_ http.ResponseWriter, inner *http.Request) {
				ctx, cancel := context.WithCancel(inner.Context())
				defer cancel()
				causes <- s.sessions.Update(ctx, own.ID(), func(*session.Session) error {
					must(t, s.sessions.End(context.Background(), own.ID()))
					<-ctx.Done()
					return context.Cause(ctx)
				})
			}), time.Minute, "").ServeHTTP(w, req)
			if cause := <-causes; cause != session.ErrEnded {
				t.Errorf("the cause is %v", cause)
			}
			err := own.Reopen(context.WithoutCancel(req.Context()))
			if !errors.Is(err, session.ErrEnded) || !errors.Is(err, store.ErrGone) || middleware.Status(err) != 409 {
				t.Errorf("Reopen: %v", err)
			}
		})
		s = newSite(t, r.Pool(t, 4), middleware.Options{}, mux)
		s.visitor(t).get(s.URL+"/derived").want(t, 503, "") // the response of http.TimeoutHandler
	})
}

// P16: If a holder's session was ended, the context says so, even if the lease notices it before the watch, or is the
// last lease before MaxHold. If the lock is lost for another reason, the cause is store.ErrLost.
func TestAHolderLearnsThatItsSessionHasEnded(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		lease, maxHold time.Duration
		most           time.Duration
		end            func(l *live, id string)
		want           error
	}{
		"by its lease": {600 * time.Millisecond, 0, 250 * time.Millisecond, func(l *live, id string) {
			must(l.T, l.there.sessions.End(l.Context(), id))
		}, session.ErrEnded},
		"in its last lease": {time.Minute, 30 * time.Second, promptly, func(l *live, id string) {
			must(l.T, l.there.sessions.End(l.Context(), id))
		}, session.ErrEnded},
		"a lost lock": {600 * time.Millisecond, 0, 250 * time.Millisecond, func(l *live, id string) {
			_, lock := keysOf(id)
			l.Do(l.T, "DEL", lock)
		}, store.ErrLost},
	} {
		inFakeTime(t, name, func(t *testing.T, r *redistest.Server) {
			l := newLive(t, r, middleware.Options{MaxHold: test.maxHold}, store.Options{Lease: test.lease, Timeout: time.Second / 2})
			id := l.id()
			l.visitor.start(l.here.URL + "/stay/holding%20it")
			<-l.stays.begun
			test.end(l, id)
			at := time.Now()
			over := <-l.stays.over
			if after := over.ended.Sub(at); !errors.Is(over.cause, test.want) || after > test.most {
				t.Errorf("the context ended %v later, because of %v", after, over.cause)
			}
		})
	}
}

// P16: a Redis that is away, or replicas that have lost touch, end nothing. When the master is back, all is as before.
func TestNothingEndsWhileRedisIsAway(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ away, back func(l *live, record string) }{
		"it does not reply": {func(l *live, _ string) { l.Pause(l.T) }, func(l *live, _ string) { l.Resume(l.T) }},
		"a replica without the record": {
			func(l *live, record string) {
				l.Do(l.T, "RENAME", record, "away")
				l.Fake(func(f *fakeredis.Server) { f.Replica = true })
			},
			func(l *live, record string) {
				l.Fake(func(f *fakeredis.Server) { f.Replica = false })
				l.Do(l.T, "RENAME", "away", record)
			},
		},
	} {
		inFakeTime(t, name, func(t *testing.T, r *redistest.Server) {
			for _, path := range []string{"/add", "/login/ann"} {
				l := newLive(t, r, middleware.Options{}, store.Options{})
				l.visitor.get(l.there.URL+path).want(t, 200, "*")
				record := recordOf(l.id())
				l.stay("holding it")
				test.away(l, record)
				for range 2 {
					l.wantOpen()
				}
				test.back(l, record)
				l.wantOpen()
				must(t, l.there.sessions.End(t.Context(), l.id()))
				l.wantEnded(time.Now())
				r.Do(t, "FLUSHALL")
			}
		})
	}
}

package middleware_test

import (
	"flag"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/internal/simulation/model/jar"
	"github.com/a2139e8d/latchkey/middleware"
	"github.com/a2139e8d/latchkey/store"
)

var courses = flag.Int("courses", 2000, "play so many random courses of package jar")

// P4: the middleware does what the model in package jar expects, in random orders of requests that are under way at
// once. A seed repeats a course.
func TestTheMiddlewareDoesWhatTheModelSays(t *testing.T) {
	t.Parallel()
	const parts = 4
	for part := range parts {
		inFakeTime(t, fmt.Sprint("part ", part), func(t *testing.T, r *redistest.Server) {
			limits := limited(t, r)
			for seed := part; seed < *courses; seed += parts {
				playCourse(t, limits, uint64(seed))
			}
		})
	}
}

// limited returns sessions for each limit of the model, all on one Redis.
func limited(t *testing.T, r *redistest.Server) (limits [3]*middleware.Sessions) {
	t.Helper()
	pool := r.Pool(t, 8)
	for limit, o := range map[jar.Limit]middleware.Options{
		jar.NoLimit: {},
		jar.One:     {MaxSessions: 1},
		jar.Refuse:  {MaxSessions: 1, RefuseLogin: true},
	} {
		o.Keys, o.Cookie, o.TTL, o.Logger = [][]byte{testKey}, http.Cookie{Name: guestCookie}, 24*time.Hour, slog.New(slog.DiscardHandler)
		s, err := middleware.New(store.New(pool, steady), o)
		if err != nil {
			t.Fatal(err)
		}
		limits[limit] = s
	}
	return limits
}

// playCourse plays a course until the middleware does something else than the model.
func playCourse(t *testing.T, limits [3]*middleware.Sessions, seed uint64) {
	t.Helper()
	c := jar.Random(seed)
	p := &play{t: t, sessions: limits[c.Limit], course: c, seed: seed, ids: make(map[string]string)}
	for i, r := range c.Requests {
		p.acts = append(p.acts, newAct(r, p.userName(r.User), i))
	}
	defer p.finish()
	p.begin(limits[jar.NoLimit])
	for i, step := range c.Steps {
		time.Sleep(time.Millisecond) // no two things happen at the same time
		if wrong := p.do(step); wrong != "" {
			t.Errorf("seed %d: step %d: %s\n%s", seed, i+1, wrong, told(c, i))
			return
		}
	}
}

// A play is a course that is under way.
type play struct {
	t                 *testing.T
	course            jar.Course
	seed              uint64
	sessions          *middleware.Sessions
	ids               map[string]string // public IDs by the model's letters
	browser, attacker kept
	acts              []*act
}

// userName returns the name of a user, whom no other play has.
func (p *play) userName(user string) string { return fmt.Sprint(user, "-", p.seed) }

// do carries out a step. It returns how the middleware differs from the model, or "".
func (p *play) do(step jar.Step) string {
	var a *act
	var browser *kept
	if step.Kind < jar.EndAll {
		a, browser = p.acts[step.Request], &p.browser
		if a.Attacker {
			browser = &p.attacker
		}
	}
	switch step.Kind {
	case jar.Send:
		a.came = *browser
	case jar.Open:
		return p.open(a, step)
	case jar.Look:
		look := newAct(jar.Request{Navigation: true}, "", -1)
		look.came = p.browser
		defer look.end()
		return p.open(look, step)
	case jar.Commit:
		return p.commit(a, step)
	case jar.Answer:
		browser.put(a.response)
	case jar.Lose:
	case jar.EndAll:
		if _, err := p.sessions.EndAll(p.t.Context(), p.userName("ann")); err != nil {
			p.t.Error(err)
		}
	case jar.Minute:
		redistest.Elapse(time.Minute + time.Second)
	}
	return ""
}

// open lets a request come to its handler, and compares the session that it has opened with the model's.
func (p *play) open(a *act, step jar.Step) string {
	s := a.begin(p.sessions)
	if s == nil {
		return fmt.Sprintf("there is an answer with the status %d before the handler", a.response.Code)
	}
	id, writes := "", writesIn(s)
	if !s.IsNew() {
		id = s.ID()
	}
	a.session = id
	switch {
	case id != p.ids[step.Session]:
		return fmt.Sprintf("it opens %s, want %q", p.letter(id), step.Session)
	case !slices.Equal(writes, step.Writes):
		return fmt.Sprintf("the session has the writes of %d, want %d", writes, step.Writes)
	}
	return ""
}

// commit lets a handler return, and compares the response with the model's.
func (p *play) commit(a *act, step jar.Step) string {
	a.end()
	if a.response.Code != step.Status {
		return fmt.Sprintf("the status is %d, want %d", a.response.Code, step.Status)
	}
	for name, want := range map[string]string{guestCookie: step.Guest, memberCookie: step.Member} {
		got := "" // the cookie is left alone
		if set := a.cookie(name); set != nil {
			got = "-"
			if set.MaxAge >= 0 {
				got = p.learn(publicID(p.t, set), want)
			}
		}
		if got != want {
			return fmt.Sprintf("the answer sets %s to %q, want %q", name, got, want)
		}
	}
	return ""
}

// learn returns the letter of a session. If it has none, and the model expects a new letter, learn gives it that
// letter.
func (p *play) learn(id, want string) string {
	_, isKnown := p.ids[want]
	if got := p.letter(id); got != "an unknown session" || isKnown || want == "-" || want == "" {
		return got
	}
	p.ids[want] = id
	return want
}

// letter returns the model's letter for a public ID.
func (p *play) letter(id string) string {
	if id == "" {
		return "none"
	}
	for letter, known := range p.ids {
		if known == id {
			return letter
		}
	}
	return "an unknown session"
}

// finish lets all handlers return that are still waiting.
func (p *play) finish() {
	for _, a := range p.acts {
		if a.done != nil {
			a.end()
		}
	}
}

// told describes a course up to a step.
func told(c jar.Course, last int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "at first: %s; %v\n", c.Start, c.Limit)
	for i, r := range c.Requests {
		fmt.Fprintf(&b, "request %d: %+v\n", i, r)
	}
	for i, s := range c.Steps[:last+1] {
		kind := [...]string{"is sent", "opens", "commits", "is answered", "is lost", "ann's sessions are ended", "a minute passes", ""}[s.Kind]
		switch {
		case s.Kind == jar.Look:
			fmt.Fprintf(&b, "%3d. the visitor looks at %q with the writes %d\n", i+1, s.Session, s.Writes)
		case s.Kind >= jar.EndAll:
			fmt.Fprintf(&b, "%3d. %s\n", i+1, kind)
		case s.Kind == jar.Open:
			fmt.Fprintf(&b, "%3d. %d opens %q with the writes %d\n", i+1, s.Request, s.Session, s.Writes)
		case s.Kind == jar.Commit:
			fmt.Fprintf(&b, "%3d. %d commits: %d, guest %q, member %q\n", i+1, s.Request, s.Status, s.Guest, s.Member)
		default:
			fmt.Fprintf(&b, "%3d. %d %s\n", i+1, s.Request, kind)
		}
	}
	return b.String()
}

package faults

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/demotest"
	"github.com/a2139e8d/latchkey/internal/history"
	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/session"
)

const streamPromise = "P16: streams end with their session, within 2 s if Redis replies, and no others"

// briefly is the idle timeout of one process's sessions.
const briefly = 6 * time.Second

// An audience has streams in all processes of a scene: requests that stay open until their session ends.
type audience struct {
	*scene
	history.Streams
	brief  *demotest.Demo   // the process whose sessions expire soon
	enders []*demotest.Demo // the processes that end sessions
	rounds int              // how many times fates was called

	closing context.Context // ends the streams that are left
	reading sync.WaitGroup
	ending  sync.WaitGroup

	doomed int       // streams whose session will end
	healed time.Time // when the fault was over
}

// stageStreams starts a scene of streams on one server. address returns the address at which the next process
// finds Redis. The lease is long, so that a busy machine hardly loses a login. But it is short enough that a lock
// left by a fault does not keep others from ending the session for long.
func stageStreams(t *testing.T, fault string, r *redistest.Server, address func() string) *audience {
	t.Helper()
	s := &scene{T: t, setting: setting{lease: 3 * lease}.complete(), redis: r}
	start := func(flags ...string) *demotest.Demo {
		return clusterApp.Start(t, append([]string{"-client", "redigo", "-redis", address(),
			"-lease", s.lease.String(), "-lock-wait", lockWait.String(), "-max-sessions", "2"}, flags...)...)
	}
	for range s.setting.demos {
		s.open(start())
	}
	t.Cleanup(func() { s.row("streams: "+fault, streamPromise) })
	return s.audience(start("-ttl", briefly.String()))
}

// audience turns a scene into one of streams.
func (s *scene) audience(brief *demotest.Demo) *audience {
	closing, stop := context.WithCancel(context.Background())
	a := &audience{scene: s, brief: brief, enders: s.demos, closing: closing}
	s.Cleanup(func() {
		stop()
		a.reading.Wait()
		a.ending.Wait()
	})
	s.begun = time.Now()
	return a
}

// A seat is a session with streams.
type seat struct {
	*guest
	name string // of the session, in the history
	id   string // of the session, from the beginning on
}

// sit begins a session, of a user or of a guest, with a stream in each of some processes.
func (a *audience) sit(name, user string, at ...*demotest.Demo) *seat {
	a.Helper()
	s := &seat{guest: a.guest(at[0]), name: name}
	if called := time.Now(); user != "" {
		got := s.ask(at[0], http.MethodPost, "/login", url.Values{"user": {user}})
		if s.cookie = got.cookie; got.status != http.StatusNoContent || got.cookie == "" {
			a.Fatalf("a login was answered with %+v", got)
		}
		a.Login(name, user, called, true)
	}
	for _, d := range at {
		a.listen(s, d)
	}
	return s
}

// listen opens a stream, and reads it until it ends.
func (a *audience) listen(s *seat, d *demotest.Demo) {
	a.Helper()
	req, err := http.NewRequestWithContext(a.closing, http.MethodGet, d.URL+"/stream", nil)
	if err != nil {
		a.Fatal(err)
	}
	req.Header.Set("Cookie", s.cookie)
	res, err := s.http.Do(req)
	if err != nil {
		a.Fatal(err)
	}
	lines := bufio.NewReader(res.Body)
	line, err := lines.ReadString('\n')
	if s.id = strings.TrimSpace(line); err != nil || res.StatusCode != http.StatusOK {
		a.Fatalf("a stream of session %s begins with %d %q, %v", s.name, res.StatusCode, line, err)
	}
	stream := a.Open(s.name)
	a.reading.Go(func() {
		defer res.Body.Close()
		line, err := lines.ReadString('\n')
		ended := strings.TrimSpace(line) == session.ErrEnded.Error()
		if stream.Close(ended); !ended && a.closing.Err() == nil {
			a.Errorf("a stream of session %s ends with %q, %v", s.name, line, err)
		}
	})
}

// A fate ends sessions. It asks again until a response says that they have ended.
type fate func(by *demotest.Demo)

// fates begins sessions with streams. It returns functions that end them, each in another way.
func (a *audience) fates() (all []fate) {
	a.Helper()
	a.rounds++
	name := func(how string) string { return fmt.Sprintf("%s %d", how, a.rounds) }
	sit := func(how, user string) *seat {
		a.doomed += len(a.demos)
		return a.sit(name(how), user, a.demos...)
	}
	out, one := sit("Destroy", ""), sit("End", "")
	ann, eve := name("ann"), name("eve")
	sit("EndAll, first", ann)
	sit("EndAll, second", ann)
	first := sit("MaxSessions", eve)
	return []fate{
		func(by *demotest.Demo) {
			a.End(out.name, a.insist(out.guest, by, "/logout", nil), true)
		},
		func(by *demotest.Demo) {
			a.End(one.name, a.insist(one.guest, by, "/end", url.Values{"id": {one.id}}), true)
		},
		func(by *demotest.Demo) {
			a.EndAll(ann, a.insist(a.guestWith(""), by, "/end-all", url.Values{"user": {ann}}), true)
		},
		func(by *demotest.Demo) { // two more logins are one too many
			form := url.Values{"user": {eve}}
			second := a.guestWith("")
			called := a.insist(second, by, "/login", form)
			a.insist(second, by, "/incr", nil) // otherwise the session would be unclaimed, and the first to end
			a.insist(a.guestWith(""), by, "/login", form)
			a.End(first.name, called, true)
		},
	}
}

// insist repeats a request until a response says that it was done. It returns when it sent the first one. If the
// guest has no cookie, it keeps the cookie of the response.
func (a *audience) insist(g *guest, by *demotest.Demo, path string, form url.Values) (called time.Time) {
	called = time.Now()
	eventually(a.T, 30*time.Second, path+" is done", func() bool {
		got := g.ask(by, http.MethodPost, path, form)
		g.cookie = cmp.Or(g.cookie, got.cookie)
		return got.status == http.StatusOK || got.status == http.StatusNoContent || a.Context().Err() != nil
	})
	return called
}

// endNow ends sessions, all at once; the processes take turns.
func (a *audience) endNow(all []fate) {
	for i, end := range all {
		by := a.enders[i%len(a.enders)]
		a.ending.Go(func() { end(by) })
	}
}

// expire begins a session that expires by its idle timeout: its only stream does not count as use.
func (a *audience) expire() {
	a.Helper()
	a.doomed++
	from := time.Now()
	s := a.sit("expires", "", a.brief)
	until := time.Now()
	a.ending.Go(func() {
		pause(a.Context(), time.Until(until.Add(briefly)))
		a.End(s.name, from.Add(briefly), true)
	})
}

// through ends sessions before a fault, during it and after it, and checks which streams end. The fault calls
// under before it ends.
func (a *audience) through(fault func(under func())) {
	a.Helper()
	stays := []*seat{a.sit("a guest stays", "", a.demos...), a.sit("a user stays", "bob", a.demos...)}
	early, meanwhile, late := a.fates(), a.fates(), a.fates()
	a.expire()
	pause(a.Context(), 1200*time.Millisecond) // so that all are watched
	a.endNow(early)
	fault(func() { a.endNow(meanwhile) })
	a.healed = time.Now()
	a.endNow(late)
	a.ending.Wait()
	if !a.awaitEnded(a.doomed) {
		a.judge()
		return
	}
	pause(a.Context(), 1500*time.Millisecond) // a round of the watch for all of them
	if ended, open := a.Counts(); open != len(stays)*len(a.demos) {
		a.Errorf("%d streams have ended, and %d have not", ended, open)
	}
	for _, s := range stays { // they would end if their session did
		called := a.insist(s.guest, a.demos[0], "/logout", nil)
		a.End(s.name, called, true)
	}
	a.awaitEnded(a.doomed + len(stays)*len(a.demos))
	a.judge()
}

// awaitEnded waits until so many streams have ended with their sessions.
func (a *audience) awaitEnded(want int) bool {
	a.Helper()
	ended := 0
	eventually(a.T, 10*time.Second, fmt.Sprintf("%d streams have ended", want), func() bool {
		ended, _ = a.Counts()
		return ended >= want
	})
	return ended >= want
}

// judge checks the history. P16 promises two seconds, which tests in fake time check. These are real processes on a
// machine that may be busy, so they get three seconds more, and the delays of the machine.
func (a *audience) judge() {
	a.Helper()
	from := func(returned time.Time) time.Time {
		if returned.Before(a.healed) {
			return a.healed
		}
		return returned
	}
	late := lateSince(a.begun)
	if err := a.Check(func(returned time.Time) time.Time { return from(returned).Add(5*time.Second + late) }); err != nil {
		a.Error(err)
	}
	ended, _ := a.Counts()
	a.seen = fmt.Sprintf("%s%d streams have ended, the slowest after %v", a.seen, ended, a.Slowest(from).Round(time.Millisecond))
	a.nothingLeft()
}

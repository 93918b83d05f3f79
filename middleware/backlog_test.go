package middleware

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/a2139e8d/latchkey/internal/logtest"
)

// A slowObserver blocks until it is freed, and counts.
type slowObserver struct {
	free chan struct{}
	told int
}

func (o *slowObserver) Observe(context.Context, Event) {
	<-o.free
	o.told++
}

// If an observer blocks until its backlog is full, it misses the events that come then. The log says how many. Later
// events are told again.
func TestASlowObserverMissesEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := &logtest.Buffer{}
		o := &slowObserver{free: make(chan struct{})}
		b := &backlog{observer: o, sessions: &Sessions{options: Options{Logger: log.Logger()}, damper: newDamper(10, time.Second)}}
		const missed = 7
		b.add(t.Context(), new(ExchangeEvent))
		synctest.Wait() // it is being told
		for range maxBacklog + missed {
			b.add(t.Context(), new(ExchangeEvent))
		}
		close(o.free)
		synctest.Wait()
		b.add(t.Context(), new(ExchangeEvent))
		synctest.Wait()
		if want := 1 + maxBacklog + 1; o.told != want {
			t.Errorf("the observer was told of %d events, want %d", o.told, want)
		}
		lines := log.Lines("misses events")
		if len(lines) != 1 || !strings.Contains(lines[0], "events=7") {
			t.Errorf("the log has %q", lines)
		}
	})
}

// A careless observer has a bug.
type careless struct{ seen map[string]int }

func (c *careless) Observe(context.Context, Event) { c.seen["all"]++ }

// The log of an observer's panic says which observer it was, and where.
func TestThePanicOfAnObserverIsLogged(t *testing.T) {
	log := &logtest.Buffer{}
	s := &Sessions{options: Options{Logger: log.Logger()}, damper: newDamper(10, time.Second)}
	free := make(chan struct{})
	close(free)
	s.tell(t.Context(), []Event{new(RequestEvent)}, []*backlog{{observer: &slowObserver{free: free}}, {observer: &careless{}}})
	if len(log.Lines("an observer has panicked", "observer=*middleware.careless", "assignment to entry in nil map", "careless).Observe")) != 1 {
		t.Errorf("the log is\n%s", log)
	}
}

// A line that is left out, since there were many, adds its events to the next line: so the numbers add up.
func TestAllMissedEventsAreLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := &logtest.Buffer{}
		s := &Sessions{options: Options{Logger: log.Logger()}, damper: newDamper(1, time.Second)}
		s.logMissed(3)
		s.logMissed(4)
		time.Sleep(time.Second)
		s.logMissed(5)
		lines := log.Lines("misses events")
		if len(lines) != 2 || !strings.Contains(lines[0], "events=3") || !strings.Contains(lines[1], "events=9") {
			t.Errorf("the log has %q", lines)
		}
	})
}

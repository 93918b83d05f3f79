package lease

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/locker/transport"
)

// withCluster runs f in fake time, with what notifies a process of a cluster.
func withCluster(t *testing.T, f func(t *testing.T, n *Notifiers, line *wire, publish func(p *place))) {
	inMemory(t, func(t *testing.T, server *redistest.Server) {
		line := &wire{Client: transport.NewRedigo(server.Pool(t, 1), patient.Timeout), cluster: true}
		n := NewNotifiers(line, func(_ context.Context, key, place string) error {
			t.Errorf("%s of %s is given up", place, key)
			return nil
		})
		f(t, n, line, func(p *place) {
			name := p.choose()
			server.Do(t, "PUBLISH", name[:strings.LastIndex(name, "/")], name+" the key")
			synctest.Wait()
		})
		redistest.Elapse(max(idleTime, retryTime))
		line.want(t, 0, line.asked)
		if len(n.byKey) != 0 {
			t.Errorf("left: %v", n.byKey)
		}
	})
}

// On a cluster each key that is waited for has a channel of its own, in its slot, and nothing is left
// of that soon after the last place.
func TestNotifiersOfACluster(t *testing.T) {
	withCluster(t, func(t *testing.T, n *Notifiers, line *wire, publish func(*place)) {
		a, b, c := n.placeFor("latchkey:{a}.lock"), n.placeFor("latchkey:{b}.lock"), n.placeFor("latchkey:{b}.lock")
		line.want(t, 2, 2)
		for p, tag := range map[*place]string{a: "{a}", b: "{b}", c: "{b}"} {
			if name := p.choose(); !strings.HasPrefix(name, channelPrefix) || !strings.Contains(name, tag+"/") {
				t.Errorf("a place is called %s", name)
			}
		}
		if !n.listening("latchkey:{a}.lock") || n.listening("latchkey:{c}.lock") {
			t.Error("who listens for which key?")
		}
		publish(b)
		if len(a.notified) != 0 || len(b.notified) != 1 || len(c.notified) != 0 {
			t.Error("the message is for b")
		}
		a.forget()
		b.forget()
		redistest.Elapse(idleTime)
		line.want(t, 1, 2)
		c.forget()
	})
}

// A place that comes for a key whose last one has just left listens to the same channel, under
// another name: the queue may still have the old one.
func TestNotifiersOfOneKeyFollowEachOther(t *testing.T) {
	withCluster(t, func(t *testing.T, n *Notifiers, line *wire, _ func(*place)) {
		names := make(map[string]bool)
		for _, pause := range []time.Duration{0, idleTime - 1, idleTime, idleTime + 1} {
			for range 10 {
				p := n.placeFor("k")
				synctest.Wait()
				if name := p.choose(); names[name] || strings.HasPrefix(name, "-") {
					t.Errorf("a place is called %q", name)
				} else {
					names[name] = true
				}
				p.forget()
				redistest.Elapse(pause)
			}
		}
	})
}

// Without SSUBSCRIBE, or the right to it, places ask. It is not tried again for each of them.
func TestNotifiersWithoutShardedChannels(t *testing.T) {
	withCluster(t, func(t *testing.T, n *Notifiers, line *wire, _ func(*place)) {
		line.denied = true
		for range 10 {
			p := n.placeFor("k")
			synctest.Wait()
			if name := p.choose(); !strings.HasPrefix(name, "-") || p.isNotified() {
				t.Errorf("a place is called %s", name)
			}
			p.forget()
			redistest.Elapse(idleTime)
		}
		line.want(t, 0, 1)
	})
}

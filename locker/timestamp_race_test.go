package locker

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/gomodule/redigo/redis"
)

// A race is what contenders do to one lock, each in steps.
type race struct {
	t     *testing.T
	conn  redis.Conn // of the referee
	peers []*peer
	procs []*contender
}

func newRace(t *testing.T, server *redistest.Server, peers, procs int) *race {
	r := &race{t: t, conn: dialed(t, server)}
	for i := range peers {
		p := newPeer(t, server, "k")
		p.lease += time.Duration(i+1) * s // so that no two write the same value
		r.peers = append(r.peers, p)
	}
	for range procs {
		r.procs = append(r.procs, newContender(t, server, "k"))
	}
	return r
}

// begin makes all of them new contenders and returns their first steps. The command
// puts what they find into an empty Redis.
func (r *race) begin(command []any) []step {
	r.do("DEL", "k", noteKey("k"))
	r.do(command[0].(string), command[1:]...)
	var steps []step
	for _, p := range r.peers {
		p.holds = false
		steps = append(steps, p.setnx)
	}
	for _, c := range r.procs {
		c.holds, c.lost, c.token = false, false, rand.Text()
		steps = append(steps, c.take)
	}
	return steps
}

func (r *race) do(command string, args ...any) any {
	reply, err := r.conn.Do(command, args...)
	if err != nil {
		r.t.Fatalf("%s: %v", command, err)
	}
	return reply
}

// contents returns the lock's value and note, "" for none.
func (r *race) contents() (value, note string) {
	if _, err := redis.Scan(r.do("MGET", "k", noteKey("k")).([]any), &value, &note); err != nil {
		r.t.Fatal(err)
	}
	return value, note
}

func (r *race) holders() int {
	n := 0
	for _, p := range r.peers {
		if p.holds {
			n++
		}
	}
	for _, c := range r.procs {
		if c.holds {
			n++
		}
	}
	return n
}

// What may lie in Redis when a race begins.
var remains = map[string][]any{
	"nothing":            {"DEL", "k"},
	"a peer's lock":      {"SET", "k", longAgo},
	"a process's lock":   {"MSET", "k", longAgo, noteKey("k"), longAgo + " f token"},
	"a lock taken stale": {"MSET", "k", longAgo, noteKey("k"), longAgo + " s token"},
}

// Three contenders find a lock whose holder died. In each order of their steps,
// one of them wins, and only that one. There are many orders, for which the real
// Redis is faster.
func TestTimestampRace(t *testing.T) {
	t.Parallel()
	server := redistest.Real(t)
	for peers := range 4 {
		for name, command := range remains {
			if peers == 3 && command[0] == "MSET" {
				continue // peers do not read notes
			}
			t.Run(fmt.Sprintf("%d peers, %s", peers, name), func(t *testing.T) {
				r := newRace(t, server, peers, 3-peers)
				changed := 0
				runs := explore(func(choose func(n int) int) {
					interleave(choose, r.begin(command), func() {})
					if r.judge(false) {
						changed++
					}
				})
				t.Logf("%d orders, in %d a loser changed the value of a process", runs, changed)
				if peers > 0 && peers < 3 && name != "nothing" && changed == 0 {
					t.Error("what this is about did not occur")
				}
			})
		}
	}
}

// In the middle of it the stale lock vanishes, because Redis expires it.
func TestTimestampRaceVanishing(t *testing.T) {
	t.Parallel()
	r := newRace(t, redistest.Real(t), 2, 1)
	vanish := func() step {
		if value, _ := r.contents(); value == longAgo {
			r.do("DEL", "k")
		}
		return nil
	}
	explore(func(choose func(n int) int) {
		interleave(choose, append(r.begin(remains["a peer's lock"]), vanish), func() {})
		r.judge(true)
	})
	r.wantNils()
}

// judge says that there is one winner, and that each process knows whether it is
// that. It returns whether the winner is a process whose value a loser changed.
// Where a stale lock may vanish, that process may have taken the lock when free.
func (r *race) judge(vanishes bool) (changed bool) {
	r.t.Helper()
	if n := r.holders(); n != 1 {
		r.t.Errorf("%d winners", n)
	}
	for _, c := range r.procs {
		if !c.holds {
			r.wantOthers(c)
		}
	}
	for _, c := range r.procs {
		if !c.holds {
			continue
		}
		value, note := r.contents()
		changed = !strings.HasPrefix(note, value+" ")
		if vanishes && changed && strings.Contains(note, " f ") {
			// This looks the same as a lock that was deleted, and taken by the
			// peer. So it had better not be relied on.
			r.wantOthers(c)
			continue
		}
		if err := c.Extend(context.Background(), "k", c.token, patient.Lease); err != nil {
			r.t.Errorf("the winner's Extend: %v", err)
		}
		c.release()
		if value, note := r.contents(); c.lost || value != "" || note != "" {
			r.t.Errorf("the winner's Release: lost %v, left %q and %q", c.lost, value, note)
		}
	}
	return changed
}

// wantOthers says that c finds the lock to be another's, and leaves it alone.
func (r *race) wantOthers(c *contender) {
	r.t.Helper()
	value, _ := r.contents()
	if err := c.Extend(context.Background(), "k", c.token, patient.Lease); !errors.Is(err, ErrLost) {
		r.t.Errorf("Extend: %v, want %v", err, ErrLost)
	}
	if c.release(); !c.lost {
		r.t.Error("Release found nothing wrong")
	}
	if now, _ := r.contents(); now != value {
		r.t.Errorf("another's value %q became %q", value, now)
	}
}

// wantNils says that the peers met all that they must be able to deal with.
func (r *race) wantNils() {
	for _, p := range r.peers {
		if p.nilGet == 0 || p.nilGetset == 0 {
			r.t.Errorf("no value: %d times in GET, %d times in GETSET", p.nilGet, p.nilGetset)
		}
	}
}

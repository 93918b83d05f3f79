package faults

import (
	"context"
	"fmt"
	"net/url"
	"sync"
	"testing"
	"time"
)

// While all slots of a master move, users log in, write and end all their sessions, of which each is in
// one slot with the others. Nobody notices: what was ended is over, and what was not is there.
func TestClusterReshardUnderUsers(t *testing.T) {
	eachClient(t, func(t *testing.T, client string) {
		s := stageCluster(t, client, "a third of the slots moves, with the sessions of users", "P14, P15: not noticed, but for the wait",
			setting{visitors: 2, clients: 1, flags: append([]string{"-lock-wait", "30s"}, calm...), longest: 35 * time.Second})
		s.slack = 20 * slack // the users' connections
		rounds := 0
		s.run(func(ctx context.Context) {
			ctx, stop := context.WithCancel(ctx)
			var users sync.WaitGroup
			counts := make([]int, 6)
			for i := range counts {
				one, two := s.guest(s.demos[0]), s.guest(s.demos[1])
				users.Go(func() {
					for ; ctx.Err() == nil; counts[i]++ {
						s.comeAndGo(fmt.Sprintf("user%d-%d", i, counts[i]), one, two)
					}
				})
			}
			masters := s.cluster.Masters(t)
			s.cluster.MoveAll(t, s.cluster.SlotsOf(t, masters[0]), masters[0], masters[1])
			stop()
			users.Wait()
			for _, n := range counts {
				rounds += n
			}
		})
		s.redirected()
		s.seen += fmt.Sprintf(", %d users", rounds)
		if rounds < 20 {
			t.Errorf("only %d users have come and gone", rounds)
		}
	})
}

// comeAndGo lets a user log in with two guests' browsers, write in both, and end all.
func (s *scene) comeAndGo(user string, both ...*guest) {
	for i, g := range both {
		d := s.demos[i]
		g.begin(d)
		g.must("the first write", g.post(d, "/incr"), 200, "1")
		got := g.ask(d, "POST", "/login", url.Values{"user": {user}})
		if g.must("a login", got, 204, ""); got.cookie == "" {
			return
		}
		g.cookie = got.cookie
		g.must("a write", g.post(s.demos[1-i], "/incr"), 200, "2")
	}
	for i, g := range both {
		g.must("another write", g.post(s.demos[i], "/incr"), 200, "3")
	}
	got := both[0].ask(s.demos[0], "POST", "/end-all", url.Values{"user": {user}})
	both[0].must("an EndAll", got, 200, "2")
	for i, g := range both {
		g.must("a read after it", g.get(s.demos[1-i], "/count"), 200, "0")
		g.must("a write after it", g.post(s.demos[i], "/incr"), 409, "")
	}
}

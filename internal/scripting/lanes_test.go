package scripting

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gomodule/redigo/redis"
)

// As long as a lane is free, an exchange goes at once, on a connection of its own.
// The next one waits for the first that is done.
func TestLanesAreFew(t *testing.T) {
	for name, tt := range map[string]struct{ connections, lanes int }{
		"a pool without a limit": {0, maxLanes},
		"a small pool":           {2, 2},
		"a large pool":           {64, maxLanes},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				p := newPuppet(t, tt.connections)
				names := []string{"a", "b", "c", "d"}[:tt.lanes]
				first := p.crowd(names...)
				late := p.ask(t.Context(), "late")
				wires := map[string]*wire{}
				for _, name := range names {
					wires[name] = p.accept()
					wires[name].wantCommands(name)
				}
				late.wantWaiting()
				wires["b"].answer("b")
				wires["b"].wantCommands("late")
				wires["b"].answer("late")
				late.wantReply()
				for _, a := range first {
					if a.name != "b" {
						wires[a.name].answer(a.name)
					}
					a.wantReply()
				}
			})
		})
	}
}

// Whoever gets a lane takes along all that wait: their commands are one write, in
// the order in which they came, and each gets its own reply.
func TestLanesTakeAlong(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		p := newPuppet(t, 1)
		first := p.ask(t.Context(), "first")
		w := p.accept()
		w.wantCommands("first")
		crowd := p.crowd("a", "b", "c", "d")
		writes := w.writes.Load()

		w.answer("first")
		first.wantReply()
		w.wantCommands("a", "b", "c", "d")
		if n := w.writes.Load() - writes; n != 1 {
			t.Errorf("%d writes, want one for all", n)
		}
		w.answer("a", "b")
		crowd[1].wantReply()
		crowd[2].wantWaiting()
		w.answer("c", "d")
		for _, a := range crowd {
			a.wantReply()
		}
	})
}

// A batch is no larger than maxBatch and maxBytes. What is larger by itself goes
// alone. Nobody is overtaken.
func TestLanesBatchesAreBounded(t *testing.T) {
	small := strings.Split("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ", "")
	third, huge := strings.Repeat("x", maxBytes/3), strings.Repeat("y", 2*maxBytes)
	for name, batches := range map[string][][]string{
		"by number": {small[:maxBatch], small[maxBatch:]},
		"by size":   {{third, third}, {third, "a"}, {huge}, {"b", third, "c"}, {huge}},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				p := newPuppet(t, 1)
				first := p.ask(t.Context(), "first")
				w := p.accept()
				w.wantCommands("first")
				crowd := p.crowd(slices.Concat(batches...)...)
				w.answer("first")
				first.wantReply()
				for _, batch := range batches {
					w.wantCommands(batch...)
					w.wantSilence()
					w.answer(batch...)
				}
				for _, a := range crowd {
					a.wantReply()
				}
			})
		})
	}
}

// Whoever waits for a lane may give up at any time. Nothing of it was sent, and the
// others keep their order.
func TestLanesWaiterGivesUp(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		p := newPuppet(t, 1)
		first := p.ask(t.Context(), "first")
		w := p.accept()
		w.wantCommands("first")
		ctx, cancel := context.WithCancel(t.Context())
		soon, stop := context.WithTimeout(t.Context(), s)
		defer stop()
		a, cancelled, b, hurried, c := p.ask(t.Context(), "a"), p.ask(ctx, "cancelled"),
			p.ask(t.Context(), "b"), p.ask(soon, "hurried"), p.ask(t.Context(), "c")

		cancel()
		cancelled.wantError(context.Canceled, false)
		hurried.wantError(context.DeadlineExceeded, false)
		if cancelled.took != 0 || hurried.took != s {
			t.Errorf("they gave up after %v and %v", cancelled.took, hurried.took)
		}
		w.answer("first")
		first.wantReply()
		w.wantCommands("a", "b", "c")
		w.answer("a", "b", "c")
		for _, a := range []*asked{a, b, c} {
			a.wantReply()
		}
	})
}

// The lane comes to one who is giving up just then: the context has ended, but the
// test holds the mutex, so it still waits. The lane must go on to the next.
func TestLanesComeTooLate(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		l := lanes{pool: &redis.Pool{MaxActive: 1}}
		ctx, cancel := context.WithCancel(t.Context())
		end := time.Now().Add(time.Minute)
		if l.enter(command{deadline: end, patience: end}) != nil {
			t.Fatal("no lane is free")
		}
		x, next := l.enter(command{deadline: end, patience: end}), l.enter(command{deadline: end, patience: end})
		var f fate
		go func() { f = l.wait(ctx, x) }()
		synctest.Wait()

		l.mu.Lock()
		cancel()
		l.pass(0)
		l.mu.Unlock()
		synctest.Wait()
		if !errors.Is(f.err, context.Canceled) || f.maybe {
			t.Errorf("whoever gave up got %+v", f)
		}
		if !<-next.turn {
			t.Error("the next one was told of its fate")
		}
		l.leave(end)
		if len(l.driving) != 0 {
			t.Error("the lane is not free")
		}
	})
}

// Whoever waits while a lane hangs is served by any other.
func TestLanesAreAllForAll(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		p := newPuppet(t, 2)
		dialled := make(chan struct{})
		p.pool.Dial = func() (redis.Conn, error) { <-dialled; return p.dial() }
		slow := p.ask(t.Context(), "slow")
		p.pool.Dial = p.dial
		first := p.ask(t.Context(), "first")
		w := p.accept()
		w.wantCommands("first")
		next := p.ask(t.Context(), "next")
		w.answer("first")
		first.wantReply()
		w.wantCommands("next")
		w.answer("next")
		next.wantReply()

		slow.wantWaiting()
		close(dialled)
		w = p.accept()
		w.wantCommands("slow")
		w.answer("slow")
		slow.wantReply()
	})
}

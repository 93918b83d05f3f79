package locker

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/a2139e8d/latchkey/locker/transport"
)

// A slow node gets its questions one after another, each with the token of its own try: also if the next try has begun
// meanwhile.
func TestASlowNodeIsAskedForTheTokenOfTheTry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := &obliging{delay: time.Second}
		r := newRedlock(NewRedlockOn([]transport.Client{&obliging{}, &obliging{}, slow}, Options{Lease: time.Hour, Timeout: time.Minute}))
		r.lock.distinct.Store(true) // so that two nodes are enough
		for range 2 {
			if found, err := r.Take(t.Context(), "k", "token", "", time.Hour); err != nil || !found.Taken {
				t.Fatalf("Take: %+v, %v", found, err)
			}
			if err := r.Extend(t.Context(), "k", "token", time.Hour); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if got := strings.Join(slow.tries, " "); got != "1 1 2 2" {
			t.Errorf("the slow node was asked for the tries %s, want 1 1 2 2", got)
		}
	})
}

// An obliging client agrees to all that it is asked, after a delay.
type obliging struct {
	delay time.Duration

	mu    sync.Mutex // guards the rest
	tries []string   // the numbers of those whose token was asked for
}

func (c *obliging) Do(_ context.Context, _ string, commands ...transport.Command) ([]any, error) {
	time.Sleep(c.delay)
	c.mu.Lock()
	defer c.mu.Unlock()
	var replies []any
	for _, command := range commands {
		for _, word := range command {
			var node, try int
			if _, err := fmt.Sscanf(fmt.Sprint(word), "%d.%d:token", &node, &try); err == nil {
				c.tries = append(c.tries, fmt.Sprint(try))
			}
		}
		keys := command[2].(int)
		replies = append(replies, []any{int64(1), command[3+keys]}) // the number of the call, as scripts reply it
	}
	return replies, nil
}

func (*obliging) Subscribe(context.Context, string) (transport.Subscription, error) {
	return nil, transport.ErrRefused
}

package main

import (
	"crypto/rand"
	"fmt"
	"sync"
	"time"

	"github.com/alicebob/miniredis/v2"
)

// startEmbedded starts a Redis in this process, and returns its URL and a function that ends it. A random
// password keeps the machine's other users out. The clock of this Redis does not run by itself, so no lock or
// session would ever expire: a goroutine advances it.
func startEmbedded() (url string, stop func(), _ error) {
	mini := miniredis.NewMiniRedis()
	password := rand.Text()
	mini.RequireAuth(password)
	if err := mini.Start(); err != nil {
		return "", nil, fmt.Errorf("starting the embedded Redis: %w", err)
	}
	done := make(chan struct{})
	var clock sync.WaitGroup
	clock.Go(func() {
		tick := time.NewTicker(10 * time.Millisecond)
		defer tick.Stop()
		last := time.Now()
		for {
			select {
			case now := <-tick.C:
				mini.FastForward(now.Sub(last))
				last = now
			case <-done:
				return
			}
		}
	})
	return "redis://:" + password + "@" + mini.Addr(), func() {
		close(done)
		clock.Wait()
		mini.Close()
	}, nil
}

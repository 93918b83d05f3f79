package main

import (
	"cmp"
	"context"
	"sync"
	"time"
)

// A crowd is a number of clients of one peer, spread over its processes.
type crowd []*client

// stillness is how long no client of a crowd may get an answer. Then the peer
// stands still, and all calls fail with [os.ErrDeadlineExceeded].
const stillness = 10 * time.Second

func dialCrowd(ctx context.Context, f *fleet, size int) (crowd, error) {
	var c crowd
	for i := range size {
		one, err := dial(ctx, f.addr(i))
		if err != nil {
			c.close()
			return nil, err
		}
		c = append(c, one)
	}
	return c, nil
}

func (c crowd) close() {
	for _, one := range c {
		one.close()
	}
}

// all does something with every client at the same time, and fails when the peer
// stands still.
func (c crowd) all(do func(i int, c *client) error) (began time.Time, err error) {
	defer c.watch(stillness)()
	return c.each(do)
}

// each does something with every client at the same time, from a moment on that
// it returns. The error is the first client's: what is wrong with one is wrong
// with most.
func (c crowd) each(do func(i int, c *client) error) (began time.Time, err error) {
	errs := make([]error, len(c))
	start := make(chan struct{}) // nobody begins before everybody is ready
	var ready, group sync.WaitGroup
	for i, one := range c {
		ready.Add(1)
		group.Go(func() {
			ready.Done()
			<-start
			errs[i] = do(i, one)
		})
	}
	ready.Wait()
	began = time.Now()
	close(start)
	group.Wait()
	return began, cmp.Or(errs...)
}

// watch ends the clients' calls when none has got an answer for so long, until
// stop is called.
func (c crowd) watch(limit time.Duration) (stop func()) {
	done := make(chan struct{})
	var group sync.WaitGroup
	group.Go(func() {
		answers, since := 0, time.Now()
		for {
			select {
			case <-done:
				return
			case <-time.After(limit / 10):
			}
			if n := c.answers(); n != answers {
				answers, since = n, time.Now()
			} else if time.Since(since) >= limit {
				c.breakOff()
				return
			}
		}
	})
	return func() {
		close(done)
		group.Wait()
	}
}

// answers returns how many all clients have got since they were dialled.
func (c crowd) answers() int {
	sum := 0
	for _, one := range c {
		sum += int(one.answers.Load())
	}
	return sum
}

func (c crowd) breakOff() {
	for _, one := range c {
		_ = one.conn.SetDeadline(time.Now()) // fails if it is closed, which is as good
	}
}

// warmUps is how many requests each client makes before anything is measured.
const warmUps = 3

// warmUp lets every client make a session of its own, and use it, so that
// connections are open and scripts known. The clients keep these sessions.
func (c crowd) warmUp() error {
	_, err := c.all(func(_ int, one *client) error {
		for range warmUps {
			if _, err := one.call("POST", "/incr"); err != nil {
				return err
			}
		}
		return nil
	})
	return err
}

// share gives all clients the session of the first.
func (c crowd) share() {
	for _, one := range c {
		one.cookie = c[0].cookie
	}
}

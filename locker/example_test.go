package locker_test

import (
	"context"
	"errors"
	"log"
	"net/http"
	"time"

	"github.com/a2139e8d/latchkey/locker"
	"github.com/gomodule/redigo/redis"
)

var pool = &redis.Pool{
	MaxIdle: 4,
	DialContext: func(ctx context.Context) (redis.Conn, error) {
		return redis.DialContext(ctx, "tcp", "127.0.0.1:6379", redis.DialConnectTimeout(time.Second))
	},
}

// A report takes most of an hour. It must not be made twice at a time, nor again
// within the day, however many servers have it in their schedule.
func Example() {
	jobs := locker.NewSpin(pool, locker.Options{
		Lease:   30 * time.Second, // if this process is killed, another may start after that
		MaxHold: time.Hour,        // if it is still running after that, it counts as stuck
		Wait:    locker.NoWait,    // if another process has the lock, it makes the report
	})
	err := report(locker.WithLabel(context.Background(), "daily report"), jobs)
	switch {
	case errors.Is(err, locker.ErrTimeout):
		log.Print(err) // … lock is held by web-3/4711 daily report for 12m0s, and its lease ends in 25s
	case err != nil:
		log.Print(err)
	}
}

func report(ctx context.Context, jobs locker.Locker) error {
	lease, err := jobs.Lock(ctx, "job:report")
	if err != nil {
		return err
	}
	defer lease.Unlock(ctx) // if the work fails, another process may try at once

	// If the lock is lost, the work must end, because another process may have started.
	working, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	lease.OnLost(cancel)

	if err := work(working); err != nil {
		return errors.Join(err, context.Cause(working)) // the cause may be locker.ErrLost
	}
	return lease.UnlockAfter(ctx, 23*time.Hour)
}

// work stands for anything that ends when its context does.
func work(ctx context.Context) error { return ctx.Err() }

// One request at a time imports into an account, on all servers.
func ExampleLocker() {
	imports := locker.NewSpin(pool, locker.Options{Wait: 5 * time.Second})
	http.Handle("POST /import/{account}", oneImport(imports, http.HandlerFunc(doImport)))
}

// oneImport lets one request at a time import into an account, on all servers.
func oneImport(locks locker.Locker, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		lease, err := locks.Lock(r.Context(), "import:"+r.PathValue("account"))
		if err != nil { // such as locker.ErrTimeout
			log.Print(err)
			http.Error(w, "Another import is running.", http.StatusServiceUnavailable)
			return
		}
		defer lease.Unlock(r.Context())

		// If the lock is lost, the handler must end, because another process may have started.
		ctx, cancel := context.WithCancelCause(r.Context())
		defer cancel(nil)
		lease.OnLost(cancel)
		next.ServeHTTP(w, r.WithContext(ctx))
	})
}

// doImport stands for any handler.
func doImport(http.ResponseWriter, *http.Request) {}

// The same with a fixed lease of an hour, which nobody extends. Whoever waits
// knows when it ends: if that is too late, it gives up at once, and else it
// sleeps until then.
func ExampleOptions_leaseEnd() {
	jobs := locker.NewSpin(pool, locker.Options{
		Lease:   time.Hour,
		MaxHold: time.Hour,
		Wait:    10 * time.Minute,
		Policy:  locker.LeaseEnd,
	})
	lease, err := jobs.Lock(context.Background(), "job:report")
	var held *locker.HeldError
	if errors.As(err, &held) {
		log.Printf("%s has been at it since %v", held.Owner, held.Owner.Since)
		return
	}
	if err != nil {
		log.Print(err)
		return
	}
	// Before a step that must not be done beside another: ask Redis. This also
	// begins the hour anew.
	if err := lease.Extend(context.Background(), time.Hour); err != nil {
		log.Print(err) // locker.ErrExpired, or locker.ErrLost: another has it
		return
	}
	_ = lease.Unlock(context.Background())
}

// Workers in PHP and in Go share a lock.
func ExampleTimestamp() {
	jobs := locker.NewTimestamp(pool, locker.Options{
		LocalClock: true, // the others write the time of their own host
	})
	lease, err := jobs.Lock(context.Background(), "import.lock")
	if err != nil {
		log.Print(err)
		return
	}
	defer lease.Unlock(context.Background())
}

// Five servers, of which any two may fail.
func ExampleRedlock() {
	var pools []*redis.Pool
	for _, addr := range []string{"10.0.0.1:6379", "10.0.0.2:6379", "10.0.0.3:6379", "10.0.0.4:6379", "10.0.0.5:6379"} {
		pools = append(pools, &redis.Pool{
			MaxIdle:     4,
			DialContext: func(ctx context.Context) (redis.Conn, error) { return redis.DialContext(ctx, "tcp", addr) },
		})
	}
	jobs := locker.NewRedlock(pools, locker.Options{})
	lease, err := jobs.Lock(context.Background(), "job:report")
	if err != nil {
		log.Print(err)
		return
	}
	defer lease.Unlock(context.Background())
	log.Printf("the lock is good for %v more", lease.Validity())
}

package main

import (
	"context"
	"encoding/json"
	"hash/crc32"
	"net/http"
	"os"
	"runtime"
	"time"

	"github.com/a2139e8d/latchkey/internal/faults/rig"
	"github.com/a2139e8d/latchkey/middleware"
)

type numberKey struct{}

// numbered puts the number of a request into its context, where observers find it.
func numbered(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), numberKey{}, number(r))))
	})
}

func number(r *http.Request) string { return r.Header.Get(rig.NumberHeader) }

func numberIn(ctx context.Context) string {
	n, _ := ctx.Value(numberKey{}).(string)
	return n
}

// A writer writes each event down at once, since the process may be killed.
type writer struct{ file *os.File }

func (w writer) Observe(ctx context.Context, e middleware.Event) {
	told := rig.Told{Number: numberIn(ctx)}
	switch e := e.Clone().(type) {
	case *middleware.RequestEvent:
		told.Request, e.Err = e, nil
	case *middleware.ExchangeEvent:
		told.Exchange, e.Err = e, nil
	case *middleware.SessionEvent:
		told.Session, e.Err = e, nil
	}
	line, err := json.Marshal(told)
	if err == nil {
		_, err = w.file.Write(append(line, '\n')) // in one write, since the file is appended to
	}
	if err != nil {
		panic(err) // the panic is logged, and the test misses the event
	}
}

// bad is an observer that, for some requests, does what no observer should do.
type bad struct{}

func (bad) Observe(ctx context.Context, e middleware.Event) {
	n := numberIn(ctx)
	if _, ok := e.(*middleware.RequestEvent); !ok || n == "" {
		return
	}
	switch crc32.ChecksumIEEE([]byte(n)) % 100 {
	case 0, 1:
		panic("a bad observer")
	case 2, 3:
		time.Sleep(100 * time.Millisecond)
	case 4:
		runtime.Goexit()
	}
}

// observers returns a bad observer, and one that writes what it is told to the file at path. An empty path means none.
func observers(path string) ([]middleware.Observer, error) {
	if path == "" {
		return nil, nil
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	return []middleware.Observer{bad{}, writer{f}}, err
}

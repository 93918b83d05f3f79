package app

import (
	"encoding/json"
	"net/http"
	"runtime"
	"sync/atomic"
	"syscall"
	"time"
)

// Stats are what a process has spent since it began.
type Stats struct {
	CPU     time.Duration
	Mallocs uint64        // allocations on the heap
	Slow    int           // requests to /slow
	Slept   time.Duration // of all of these together, in the handler
}

// A meter measures how long the handler of /slow takes, which is more than it
// is asked to sleep.
type meter struct{ count, nanoseconds atomic.Int64 }

func (m *meter) begin() (end func()) {
	began := time.Now()
	return func() {
		m.count.Add(1)
		m.nanoseconds.Add(int64(time.Since(began)))
	}
}

// ServeHTTP answers with the Stats.
func (m *meter) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	reply(w, Stats{
		CPU:     time.Duration(usage.Utime.Nano() + usage.Stime.Nano()),
		Mallocs: memory.Mallocs,
		Slow:    int(m.count.Load()),
		Slept:   time.Duration(m.nanoseconds.Load()),
	})
}

func reply(w http.ResponseWriter, v any) {
	_ = json.NewEncoder(w).Encode(v) // who does not get it will say so
}

package app

import (
	"encoding/json"
	"fmt"
	"net/http"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// BigValue is the size of each value of a large session.
const BigValue = 1000

// newHandler returns the application. Its responses are numbers, except those for the benchmark itself:
//
//	POST /incr   adds 1 to n and returns n
//	POST /slow   the same, and sleeps for as long as the query says
//	POST /set    stores 1 under the key in the query, and returns 1
//	POST /login  stores the values of a login, and returns their number
//	POST /fill   stores as many large values as the query says, and returns their number
//	GET  /count  returns n
//	GET  /size   returns the number of keys
//	GET  /stats  returns the process's Stats
//	POST /lock   uses the lock alone, see Alone
func newHandler(b backend) http.Handler {
	mux := http.NewServeMux()
	for pattern, work := range map[string]func(*http.Request, values) int{
		"POST /incr": increment,
		"POST /slow": func(r *http.Request, v values) int {
			d, _ := time.ParseDuration(r.URL.RawQuery) // the benchmark's own
			time.Sleep(d)
			return increment(r, v)
		},
		"POST /set": func(r *http.Request, v values) int {
			v.put(r.URL.RawQuery, 1)
			return 1
		},
		"POST /login": login,
		"POST /fill":  fill,
		"GET /count":  func(_ *http.Request, v values) int { return v.get("n") },
		"GET /size":   func(_ *http.Request, v values) int { return v.size() },
	} {
		mux.Handle(pattern, b.serve(work))
	}
	mux.HandleFunc("GET /stats", serveStats)
	if b.lock != nil {
		mux.HandleFunc("POST /lock", func(w http.ResponseWriter, r *http.Request) { serveAlone(w, r, b.lock) })
	}
	return mux
}

func increment(_ *http.Request, v values) int {
	n := v.get("n") + 1
	v.put("n", n)
	return n
}

// profile is the content of a small session: 100 bytes as JSON.
var profile = map[string]any{
	"csrf": "Zm9ydHktdHdvLWJ5dGVzLTI1Y",
	"lang": "en-GB",
	"name": "Ada Lovelace",
	"role": "admin",
	"user": 1815,
}

func login(_ *http.Request, v values) int {
	for key, value := range profile {
		v.put(key, value)
	}
	return len(profile)
}

func fill(r *http.Request, v values) int {
	n, _ := strconv.Atoi(r.URL.RawQuery) // the benchmark's own
	text := strings.Repeat("x", BigValue)
	for i := range n {
		v.put(fmt.Sprintf("value%d", i), text)
	}
	return n
}

// answer writes a number as the whole body of a response.
func answer(w http.ResponseWriter, n int) { fmt.Fprint(w, n) }

// Stats are what a process has spent since it began.
type Stats struct {
	CPU     time.Duration
	Mallocs uint64 // allocations on the heap
}

func serveStats(w http.ResponseWriter, _ *http.Request) {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	reply(w, Stats{CPU: time.Duration(usage.Utime.Nano() + usage.Stime.Nano()), Mallocs: memory.Mallocs})
}

func reply(w http.ResponseWriter, v any) {
	_ = json.NewEncoder(w).Encode(v) // a client that gets no response reports that
}

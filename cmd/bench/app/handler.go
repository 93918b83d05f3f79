package app

import (
	"fmt"
	"net/http"
	"strings"
	"time"
)

// A record of the workload "big" has this many values of this size.
const (
	BigValues = 200
	BigValue  = 1000
)

// newHandler returns the application. Every answer is a number, but for those to
// the benchmark itself:
//
//	POST /incr   adds 1 to n, and answers n
//	POST /slow   the same, and takes as long as the query says
//	POST /set    stores 1 under the key that the query is, and answers 1
//	POST /fill   makes it a large session
//	GET  /count  answers n
//	GET  /size   answers the number of keys
//	GET  /stats  what the process has spent, see Stats
//	POST /lock   the lock alone, see Alone
func newHandler(b backend) http.Handler {
	mux := http.NewServeMux()
	m := new(meter)
	for pattern, work := range map[string]func(*http.Request, values) int{
		"POST /incr": increment,
		"POST /slow": func(r *http.Request, v values) int {
			defer m.begin()()
			n := increment(r, v)
			d, _ := time.ParseDuration(r.URL.RawQuery) // the benchmark's own
			time.Sleep(d)
			return n
		},
		"POST /set": func(r *http.Request, v values) int {
			v.put(r.URL.RawQuery, 1)
			return 1
		},
		"POST /fill": fill,
		"GET /count": func(_ *http.Request, v values) int { return v.get("n") },
		"GET /size":  func(_ *http.Request, v values) int { return v.size() },
	} {
		mux.Handle(pattern, b.serve(work))
	}
	mux.Handle("GET /stats", m)
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

func fill(_ *http.Request, v values) int {
	text := strings.Repeat("x", BigValue)
	for i := range BigValues {
		v.put(fmt.Sprintf("value%d", i), text)
	}
	return BigValues
}

// answer writes the number that is the whole answer to a request.
func answer(w http.ResponseWriter, n int) { fmt.Fprint(w, n) }

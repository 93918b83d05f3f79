package store_test

import (
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"

	"github.com/a2139e8d/latchkey/store"
	"github.com/a2139e8d/latchkey/store/embedded"
)

// ready is the handler of a readiness check: a load balancer sends no requests to a process that cannot reach
// Redis.
func ready(st *store.Store) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if err := st.Ping(r.Context()); err != nil {
			http.Error(w, "no Redis", http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintln(w, "ready")
	}
}

func ExampleStore_Ping() {
	st, err := embedded.Open(store.Options{}) // in production: store.Open("redis://…", store.Options{})
	if err != nil {
		log.Fatal(err)
	}
	check := func() {
		w := httptest.NewRecorder()
		ready(st)(w, httptest.NewRequest(http.MethodGet, "/readyz", nil))
		fmt.Print(w.Code, " ", w.Body)
	}
	check()
	st.Close() // from now on the store is as good as a Redis that is away
	check()
	// Output:
	// 200 ready
	// 503 no Redis
}

package store_test

import (
	"crypto/rand"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/a2139e8d/latchkey/middleware"
	"github.com/a2139e8d/latchkey/session"
	"github.com/a2139e8d/latchkey/store"
	"github.com/alicebob/miniredis/v2"
)

// With keys, what a session holds cannot be read in Redis.
func ExampleEncryption_sealed() {
	for _, keys := range [][][]byte{nil, {make([]byte, 32)}} {
		mini, err := miniredis.Run() // a Redis for this example, into which it can look
		if err != nil {
			log.Fatal(err)
		}
		defer mini.Close()
		for _, key := range keys {
			rand.Read(key) // a real program reads its keys from its configuration
		}
		st, err := store.Open("redis://"+mini.Addr(), store.Options{Encryption: store.Encryption{Keys: keys}})
		if err != nil {
			log.Fatal(err)
		}
		defer st.Close()
		cookieKey := make([]byte, 32)
		rand.Read(cookieKey)
		sessions, err := middleware.New(st, middleware.Options{Keys: [][]byte{cookieKey}})
		if err != nil {
			log.Fatal(err)
		}

		buy := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			session.FromContext(r.Context()).Set("cart", []string{"tea and biscuits"})
		})
		sessions.Handler(buy).ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, "/", nil))
		record, _ := mini.Get(mini.Keys()[0])
		fmt.Println("keys:", len(keys), "Redis knows of the tea:", strings.Contains(record, "tea and biscuits"))
	}
	// Output:
	// keys: 0 Redis knows of the tea: true
	// keys: 1 Redis knows of the tea: false
}

package store_test

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"time"

	"github.com/a2139e8d/latchkey/store"
	"github.com/a2139e8d/latchkey/store/embedded"
)

// A program ends: first its requests, so that they can save their sessions, and then the store.
func ExampleStore_Close() {
	st, err := embedded.Open(store.Options{}) // in production: store.Open("redis://…", store.Options{})
	if err != nil {
		log.Fatal(err)
	}
	server := &http.Server{} // with Handler: sessions.Handler(mux)
	// In a program: signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	terminated, stop := context.WithCancel(context.Background())
	stop()

	<-terminated.Done()
	within, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	fmt.Println(server.Shutdown(within)) // waits for the requests
	fmt.Println(st.Close())
	// Output:
	// <nil>
	// <nil>
}

package middleware

import (
	"fmt"
	"net/http"
	"sync"
	"testing"
)

// A handler may print its context while another goroutine waits for its end.
func TestAHandlersContextCanBePrinted(t *testing.T) {
	t.Parallel()
	rq := &request{base: new(http.Request).WithContext(t.Context())}
	rq.context.begin(rq)
	var both sync.WaitGroup
	both.Go(func() { rq.context.Done() })
	both.Go(func() {
		if got, want := fmt.Sprint(&rq.context), "middleware: the context of a handler"; got != want {
			t.Errorf("%q, want %q", got, want)
		}
	})
	both.Wait()
	rq.context.end(nil)
}

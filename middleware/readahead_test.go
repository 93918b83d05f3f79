package middleware_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/middleware"
)

// P5: a waiting request holds its body, once, and little more; one whose body has not come yet
// holds no room for it. Not parallel: it looks at the memory of the whole program.
func TestAWaitingRequestHoldsItsBodyAndLittleMore(t *testing.T) {
	const (
		waiting = 100
		buffer  = 64 << 10
		rest    = 24 << 10 // net/http's buffers, the request, its goroutine's objects
	)
	for name, test := range map[string]struct {
		sent, most int
	}{
		"whole bodies": {buffer, buffer + rest},
		"one byte":     {1, rest},
	} {
		t.Run(name, func(t *testing.T) {
			mux := app()
			busy, free := holding(mux)
			arrived := make(chan struct{}, waiting)
			s := newSessions(t, redistest.Embedded(t), middleware.Options{LockWait: time.Minute}).Handler(mux)
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
				req.Body = &watchedBody{req.Body, test.sent, arrived}
				s.ServeHTTP(w, req)
			}))
			defer srv.Close()
			v := newVisitor(t)
			a := v.get(srv.URL + "/add")
			a.want(t, 200, "1")
			held := v.start(srv.URL + "/hold")
			<-busy

			wires := make([]*wire, waiting)
			for i := range wires {
				wires[i] = dial(t, srv)
			}
			head := fmt.Sprintf("POST /add HTTP/1.1\r\nHost: a\r\nCookie: sid=%s\r\nContent-Length: %d\r\n\r\n", a.Cookies()[0].Value, buffer)
			content := string(make([]byte, test.sent))
			before := heap()
			for _, w := range wires {
				w.send(head)
				w.send(content)
			}
			for range wires {
				select {
				case <-arrived:
				case <-time.After(20 * time.Second):
					t.Fatal("bodies are not read while their requests wait")
				}
			}
			each := (heap() - before) / waiting
			t.Logf("%d bytes for each waiting request", each)
			if each < test.sent || each > test.most {
				t.Errorf("a waiting request holds %d bytes: want from %d to %d", each, test.sent, test.most)
			}
			for _, w := range wires {
				w.Close()
			}
			close(free)
			(<-held).want(t, 200, "")
		})
	}
}

// A watchedBody says when so many bytes of it were read.
type watchedBody struct {
	io.ReadCloser
	left    int
	arrived chan<- struct{}
}

func (b *watchedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if b.left -= n; b.left == 0 {
		b.arrived <- struct{}{}
	}
	return n, err
}

// heap returns the bytes of all objects in use.
func heap() int {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC() // what sync.Pools hold goes with the second
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}

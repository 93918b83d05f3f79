package middleware_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"testing"
	"testing/iotest"
	"time"

	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/middleware"
	"github.com/a2139e8d/latchkey/store"
)

// A body that was read before the handler runs is, for the handler, the body that came in: the
// same content and errors, however large it is and however it is read.
func TestABodyThatWasReadAheadIsTheSame(t *testing.T) {
	t.Parallel()
	r := redistest.Embedded(t)
	for name, read := range map[string]func(w http.ResponseWriter, body io.ReadCloser){
		"whole": func(w http.ResponseWriter, body io.ReadCloser) {
			content, err := io.ReadAll(body)
			fmt.Fprintf(w, "%x %v", content, err)
		},
		"byte by byte": func(w http.ResponseWriter, body io.ReadCloser) {
			content, err := io.ReadAll(iotest.OneByteReader(body))
			fmt.Fprintf(w, "%x %v", content, err)
		},
		"after Close": func(w http.ResponseWriter, body io.ReadCloser) {
			_, first := io.ReadFull(body, make([]byte, 1))
			closed := body.Close()
			n, err := body.Read(make([]byte, 10))
			fmt.Fprint(w, first, closed, n, err)
		},
	} {
		for _, http2 := range []bool{false, true} {
			t.Run(fmt.Sprint(name, ", HTTP/2: ", http2), func(t *testing.T) {
				t.Parallel()
				mux := app()
				mux.HandleFunc("/body", func(w http.ResponseWriter, req *http.Request) { read(w, req.Body) })
				sessions, err := middleware.New(store.New(r.Pool(t, 4), store.Options{}), middleware.Options{Keys: [][]byte{testKey}})
				if err != nil {
					t.Fatal(err)
				}
				plain, sessioned := secure(t, mux, http2), secure(t, sessions.Handler(mux), http2)
				v := newVisitor(t)
				v.Transport = sessioned.Client().Transport
				v.get(sessioned.URL+"/add").want(t, 200, "1") // without a session nothing is read ahead
				for _, size := range []int{1, 4095, 4096, 4097, 8193, 40_000, 65_536, 65_537} {
					body := bytes.Repeat([]byte("ab"), size)[:size]
					want, err := plain.Client().Post(plain.URL+"/body", "", bytes.NewReader(body))
					if err != nil {
						t.Fatal(err)
					}
					content, _ := io.ReadAll(want.Body)
					want.Body.Close()
					got := v.send(t.Context(), http.MethodPost, sessioned.URL+"/body", bytes.NewReader(body))
					if got.body != string(content) || got.err != nil {
						t.Errorf("%d bytes: %.200s, %v; without sessions %.200s", size, got.body, got.err, content)
					}
				}
			})
		}
	}
}

// secure serves h over TLS, so that the cookie comes back.
func secure(t *testing.T, h http.Handler, http2 bool) *httptest.Server {
	t.Helper()
	srv := httptest.NewUnstartedServer(h)
	srv.EnableHTTP2 = http2
	srv.StartTLS()
	t.Cleanup(srv.Close)
	return srv
}

// net/http closes a body that is there once the answer has begun. What was read ahead is read to
// its end nevertheless.
func TestABodyThatWasReadAheadIsReadAfterAFlush(t *testing.T) {
	t.Parallel()
	mux := app()
	mux.HandleFunc("/flush", func(w http.ResponseWriter, req *http.Request) {
		w.(http.Flusher).Flush()
		content, err := io.ReadAll(req.Body)
		fmt.Fprint(w, len(content), err)
	})
	s := newSite(t, redistest.Embedded(t).Pool(t, 2), middleware.Options{}, mux)
	v := newVisitor(t)
	v.get(s.URL+"/add").want(t, 200, "1")
	v.send(t.Context(), "POST", s.URL+"/flush", bytes.NewReader(make([]byte, 5000))).want(t, 200, "5000 <nil>")
}

// The error of a body that ends badly is the handler's, after what came before it.
func TestTheErrorOfABodyIsTheHandlers(t *testing.T) {
	t.Parallel()
	redistest.InFakeTime(t, func(t *testing.T, r *redistest.Server) {
		mux := app()
		mux.HandleFunc("/body", func(w http.ResponseWriter, req *http.Request) {
			content, err := io.ReadAll(req.Body)
			var large *http.MaxBytesError
			fmt.Fprint(w, len(content), errors.As(err, &large))
			if _, again := req.Body.Read(make([]byte, 1)); again == nil || again == io.EOF {
				t.Errorf("the error was forgotten: %v", again)
			}
		})
		s := around(t, r, middleware.Options{}, func(sessions func(http.Handler) http.Handler) http.Handler {
			return http.MaxBytesHandler(sessions(mux), 5000)
		})
		v := newVisitor(t)
		v.get(s.URL+"/add").want(t, 200, "1")
		v.send(t.Context(), http.MethodPost, s.URL+"/body", bytes.NewReader(make([]byte, 10_000))).want(t, 200, "5000 true")
	})
}

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
			r := redistest.Real(t)
			mux := app()
			busy, free := holding(mux)
			arrived := make(chan struct{}, waiting)
			s := newSite(t, r.Pool(t, 4), middleware.Options{LockWait: time.Minute}, mux)
			sessions := s.Config.Handler
			s.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
				req.Body = &watchedBody{req.Body, test.sent, arrived}
				sessions.ServeHTTP(w, req)
			})
			v := newVisitor(t)
			v.get(s.URL+"/add").want(t, 200, "1")
			cookie := v.cookies(s)[0]
			held := v.start(s.URL + "/hold")
			<-busy

			wires := make([]*wire, waiting)
			for i := range wires {
				wires[i] = dial(t, s.Server)
			}
			head := fmt.Sprintf("POST /add HTTP/1.1\r\nHost: a\r\nCookie: %s=%s\r\nContent-Length: %d\r\n\r\n", cookie.Name, cookie.Value, buffer)
			content := make([]byte, test.sent)
			before := heap()
			for _, w := range wires {
				w.send(head)
				if _, err := w.Write(content); err != nil {
					t.Fatal(err)
				}
			}
			for range wires {
				<-arrived
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

package middleware_test

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"net/textproto"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/middleware"
	"github.com/a2139e8d/latchkey/session"
	"github.com/a2139e8d/latchkey/store"
)

// The status stays open until the first byte, is the first one that the handler chooses, and is
// closed from then on: with sessions as without, over HTTP/1.1 and HTTP/2.
func TestTheStatusIsTheOneOfNetHTTP(t *testing.T) {
	t.Parallel()
	broken := iotest.ErrReader(errors.New("upstream failed"))
	fallback := func(w http.ResponseWriter, src io.Reader) {
		w.Header().Set("X-Before", "yes")
		if _, err := io.Copy(w, src); err != nil {
			w.Header().Set("X-Why", err.Error())
			http.Error(w, "sorry", http.StatusBadGateway)
		}
	}
	handlers := map[string]func(w http.ResponseWriter){
		"copy fails at once": func(w http.ResponseWriter) { fallback(w, broken) },
		"large copy fails at once": func(w http.ResponseWriter) {
			w.Header().Set("Content-Length", "100000")
			fallback(w, broken)
		},
		"copy fails later": func(w http.ResponseWriter) { fallback(w, io.MultiReader(strings.NewReader("some"), broken)) },
		"copy of nothing, then 404": func(w http.ResponseWriter) {
			_, _ = io.Copy(w, io.LimitReader(strings.NewReader(""), 1))
			w.WriteHeader(404)
		},
		"copy of nothing, then a header": func(w http.ResponseWriter) {
			_, _ = io.Copy(w, io.LimitReader(strings.NewReader(""), 1))
			w.Header().Set("X-Why", "nothing")
		},
		"write of nothing, then 404": func(w http.ResponseWriter) { _, _ = w.Write(nil); w.WriteHeader(404) },
		"flush, then 404":            func(w http.ResponseWriter) { w.(http.Flusher).Flush(); w.WriteHeader(404) },
		"0 after 201":                func(w http.ResponseWriter) { w.WriteHeader(201); w.WriteHeader(0) },
		"99 after 201":               func(w http.ResponseWriter) { w.WriteHeader(201); w.WriteHeader(99) },
		"1000 after 201":             func(w http.ResponseWriter) { w.WriteHeader(201); w.WriteHeader(1000) },
		"-1 after a byte":            func(w http.ResponseWriter) { fmt.Fprint(w, "a"); w.WriteHeader(-1) },
		"0 after a flush":            func(w http.ResponseWriter) { w.(http.Flusher).Flush(); w.WriteHeader(0) },
		"103":                        func(w http.ResponseWriter) { w.WriteHeader(103); w.WriteHeader(201) },
		"103 after 201":              func(w http.ResponseWriter) { w.WriteHeader(201); w.WriteHeader(103) },
		"103 after a byte":           func(w http.ResponseWriter) { fmt.Fprint(w, "a"); w.WriteHeader(103) },
		"103 after a flush":          func(w http.ResponseWriter) { w.(http.Flusher).Flush(); w.WriteHeader(103) },
		"101 after 201":              func(w http.ResponseWriter) { w.WriteHeader(201); w.WriteHeader(101) },
	}
	onlyHTTP2 := map[string]func(w http.ResponseWriter){
		"101": func(w http.ResponseWriter) { w.WriteHeader(101); fmt.Fprint(w, "a") },
	}
	r := redistest.Embedded(t)
	sessions, err := middleware.New(store.New(r.Pool(t, 4), store.Options{}), middleware.Options{
		Keys: [][]byte{testKey}, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	compare := func(name string, h func(w http.ResponseWriter), http2 bool) {
		t.Run(fmt.Sprint(name, ", HTTP/2: ", http2), func(t *testing.T) {
			t.Parallel()
			plain := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { h(w) })
			want, got := seen(t, plain, http2), seen(t, sessions.Handler(touched(plain)), http2)
			if got != want {
				t.Errorf("%s\nwithout sessions: %s", got, want)
			}
		})
	}
	for name, h := range handlers {
		compare(name, h, false)
		compare(name, h, true)
	}
	for name, h := range onlyHTTP2 {
		compare(name, h, true)
	}
}

// seen returns what a client sees of an answer of h.
func seen(t *testing.T, h http.Handler, http2 bool) string {
	t.Helper()
	srv := httptest.NewUnstartedServer(h)
	srv.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, 0)
	srv.EnableHTTP2 = true
	if http2 {
		srv.StartTLS()
	} else {
		srv.Start()
	}
	defer srv.Close()
	v := with(t)
	v.Transport = srv.Client().Transport
	var informational []int
	ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{
		Got1xxResponse: func(code int, _ textproto.MIMEHeader) error {
			informational = append(informational, code)
			return nil
		},
	})
	a := v.send(ctx, http.MethodPost, srv.URL, nil)
	if a.err == nil && (a.ProtoMajor == 2) != http2 {
		t.Fatalf("%s", a.Proto)
	}
	return fmt.Sprintf("%v %d %q, failed: %v, X-Before %q, X-Why %q, Content-Type %q", informational, a.StatusCode, a.body, a.err != nil,
		a.Header.Get("X-Before"), a.Header.Get("X-Why"), a.Header.Get("Content-Type"))
}

// A second WriteHeader is a mistake that net/http reports. It does not see one that comes before
// the commit, so the sessions report that, once, with the place.
func TestASuperfluousWriteHeaderIsLogged(t *testing.T) {
	t.Parallel()
	redistest.InFakeTime(t, func(t *testing.T, r *redistest.Server) {
		s := newSite(t, r.Pool(t, 4), middleware.Options{}, http.HandlerFunc(answersTwice))
		newVisitor(t).get(s.URL).want(t, 403, "no")
		lines := s.log.Lines("superfluous")
		if len(lines) != 1 || !strings.Contains(lines[0], "answersTwice:") || !strings.Contains(lines[0], "status=403 ignored=500") {
			t.Errorf("log: %q", lines)
		}
	})
}

func answersTwice(w http.ResponseWriter, req *http.Request) {
	session.FromContext(req.Context()).Set("a", 1)
	w.WriteHeader(http.StatusForbidden)
	fmt.Fprint(w, "no")
	w.WriteHeader(http.StatusInternalServerError)
	w.WriteHeader(http.StatusNotFound)
}

package middleware_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/middleware"
	"github.com/a2139e8d/latchkey/session"
)

// serve sends the pair's page a request, which prepare changes first, as a handler around the sessions may. w gets
// the response.
func (p *pair) serve(t *testing.T, w http.ResponseWriter, prepare func(*http.Request)) {
	t.Helper()
	req := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/page?q=1", nil)
	req.AddCookie(p.v.cookie(p.here))
	prepare(req)
	p.here.Config.Handler.ServeHTTP(w, req)
}

// Whatever the first run does to the request, the second run gets the request as it came. Both runs share the values
// of its context.
func TestTheSecondRunHasTheRequestAsItCame(t *testing.T) {
	t.Parallel()
	nothing := func(*http.Request) {}
	parse := func(r *http.Request) { _ = r.ParseForm() }
	for name, c := range map[string]struct {
		around, run func(*http.Request) // what happens around the sessions, and in each run
		shows       func(*http.Request) any
	}{
		"a value of the header": {
			func(r *http.Request) { r.Header["X-List"] = []string{"a", "b"} },
			func(r *http.Request) { r.Header["X-List"][0] = "changed" },
			func(r *http.Request) any { return r.Header["X-List"] }},
		"the URL": {
			nothing,
			func(r *http.Request) { r.URL.RawQuery = "q=2"; r.URL.User = url.User("ann") },
			func(r *http.Request) any { return r.URL }},
		"a form that was parsed before": {
			parse,
			func(r *http.Request) { r.Form.Add("q", "2"); r.Form["q"][0] = "changed" },
			func(r *http.Request) any { return r.Form }},
		"a form that the first run parses": {
			nothing,
			func(r *http.Request) { parse(r); r.Form.Add("q", "2") },
			func(r *http.Request) any { return r.Form }},
		"a posted form that was parsed before": {
			func(r *http.Request) { r.PostForm = url.Values{"p": {"1"}} },
			func(r *http.Request) { r.PostForm.Set("p", "2") },
			func(r *http.Request) any { return r.PostForm }},
		"an upload that was parsed before": {
			func(r *http.Request) { r.MultipartForm = &multipart.Form{Value: map[string][]string{"m": {"1"}}} },
			func(r *http.Request) { r.MultipartForm.Value["m"][0] = "2" },
			func(r *http.Request) any { return r.MultipartForm.Value }},
		"an upload that the first run reads": {
			func(r *http.Request) { r.Header.Set("Content-Type", "multipart/form-data; boundary=b") },
			func(r *http.Request) { _, _ = r.MultipartReader() },
			func(r *http.Request) any { return r.MultipartForm == nil }},
		"trailers": {
			func(r *http.Request) { r.Trailer = http.Header{"X-Sum": {"1"}} },
			func(r *http.Request) { r.Trailer.Set("X-Sum", "2") },
			func(r *http.Request) any { return r.Trailer }},
		"a part of the path": {
			func(r *http.Request) { r.SetPathValue("item", "1") },
			func(r *http.Request) { r.SetPathValue("item", "2") },
			func(r *http.Request) any { return r.PathValue("item") }},
		"its context": {
			func(r *http.Request) { *r = *r.WithContext(context.WithValue(r.Context(), contextKey{}, "around")) },
			func(r *http.Request) { *r = *r.WithContext(context.WithValue(r.Context(), contextKey{}, "run")) },
			func(r *http.Request) any { return r.Context().Value(contextKey{}) }},
	} {
		inFakeTime(t, name, func(t *testing.T, r *redistest.Server) {
			var seen []string
			p := newPair(t, r, middleware.Options{}, func(p *pair, run int32, _ http.ResponseWriter, req *http.Request) {
				add(session.FromContext(req.Context()))
				seen = append(seen, fmt.Sprint(c.shows(req)))
				if c.run(req); run == 1 {
					p.another(t, "/add")
				}
			})
			w := httptest.NewRecorder()
			p.serve(t, w, c.around)
			if w.Code != 200 || len(seen) != 2 || seen[0] != seen[1] {
				t.Errorf("%d; the runs have seen %q", w.Code, seen)
			}
		})
	}
}

type contextKey struct{}

// A header that the first run has kept, for example in a goroutine, is not the header of the second run's response.
func TestAHeaderThatTheFirstRunHasKept(t *testing.T) {
	inBubble(t, func(t *testing.T, r *redistest.Server) {
		var kept http.Header
		p := newPair(t, r, middleware.Options{}, func(p *pair, run int32, w http.ResponseWriter, req *http.Request) {
			add(session.FromContext(req.Context()))
			if run == 1 {
				kept = w.Header()
				kept.Set("X-First", "yes")
				kept.Set(http.TrailerPrefix+"X-Trailer", "yes")
				p.another(t, "/add")
				return
			}
			kept.Set("X-Stray", "yes")
			w.Header().Set("X-Second", "yes")
			kept.Set("X-Second", "no")
		})
		a := p.v.get(p.here.URL + "/page")
		a.want(t, 200, "")
		if h := a.Header; h.Get("X-First")+h.Get("X-Stray") != "" || h.Get("X-Second") != "yes" || len(a.Trailer) != 0 {
			t.Errorf("header %v, trailer %v", h, a.Trailer)
		}
		p.wantRuns(t, 2)
	})
}

// If there is only one run, a header that the handler has kept is the header of its response, as without sessions:
// until the header is sent, and for the trailers.
func TestAHeaderThatIsKept(t *testing.T) {
	t.Parallel()
	for path, end := range map[string]func(http.ResponseWriter){
		"/whole":  func(http.ResponseWriter) {},
		"/stream": func(w http.ResponseWriter) { w.(http.Flusher).Flush() },
	} {
		inFakeTime(t, path, func(t *testing.T, r *redistest.Server) {
			mux := app()
			handle(mux, "/kept", func(s *session.Session, w http.ResponseWriter, req *http.Request) {
				add(s)
				h := w.Header()
				h.Set("Trailer", "X-Sum")
				h["Date"] = nil
				h.Set("Link", "</early>")
				w.WriteHeader(http.StatusEarlyHints)
				h.Del("Link")
				h.Set("X-Early", "yes")
				w.WriteHeader(http.StatusAccepted)
				h.Set("X-Late", "yes")
				fmt.Fprint(w, "body")
				end(w)
				h.Set("X-Sum", "1")
				h.Set(http.TrailerPrefix+"X-More", "2")
			})
			s, v := begun(t, r, middleware.Options{Mode: optimisticGets}, mux)
			for _, method := range []string{http.MethodGet, http.MethodPost} { // GET is optimistic, POST is not
				a := v.send(t.Context(), method, s.URL+"/kept", nil)
				a.want(t, http.StatusAccepted, "body")
				h := a.Header
				if h.Get("X-Early") != "yes" || h.Get("Link")+h.Get("X-Late")+h.Get("Date") != "" || a.Trailer.Get("X-Sum") != "1" || a.Trailer.Get("X-More") != "2" {
					t.Errorf("%s: header %v, trailer %v", method, h, a.Trailer)
				}
			}
		})
	}
}

// A handler that has hijacked the connection writes the header itself. The handler finds the cookie in the header,
// even in one that it has kept.
func TestAKeptHeaderHasTheCookie(t *testing.T) {
	inBubble(t, func(t *testing.T, r *redistest.Server) {
		mux := app()
		handle(mux, "/take-over", func(s *session.Session, w http.ResponseWriter, _ *http.Request) {
			h := w.Header()
			s.Renew()
			conn, _, err := http.NewResponseController(w).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nConnection: close\r\n")
			_ = h.Write(conn)
			_, _ = io.WriteString(conn, "\r\n")
			_ = conn.Close()
		})
		s, v := begun(t, r, middleware.Options{Mode: optimisticGets}, mux)
		if a := v.get(s.URL + "/take-over"); !a.sets() {
			t.Errorf("%v, header %v", a.err, a.Header)
		}
		v.get(s.URL+"/get").want(t, 200, "1")
	})
}

// A controlled writer notes what is done to its connection.
type controlled struct {
	*httptest.ResponseRecorder
	calls []string
}

func (c *controlled) note(call string) error { c.calls = append(c.calls, call); return nil }

func (c *controlled) SetReadDeadline(time.Time) error  { return c.note("read deadline") }
func (c *controlled) SetWriteDeadline(time.Time) error { return c.note("write deadline") }
func (c *controlled) EnableFullDuplex() error          { return c.note("full duplex") }
func (c *controlled) Write(p []byte) (int, error) {
	_ = c.note("body")
	return c.ResponseRecorder.Write(p)
}

// control makes the calls that a controlled writer can note.
func control(w http.ResponseWriter) error {
	c := http.NewResponseController(w)
	return errors.Join(c.SetReadDeadline(time.Now()), c.SetWriteDeadline(time.Now()), c.EnableFullDuplex())
}

// The second run begins without the deadlines and the full duplex that the first run has set. If there is only one
// run, they are set before the response is sent.
func TestDeadlinesOfTheFirstRunAreForgotten(t *testing.T) {
	t.Parallel()
	all := []string{"read deadline", "write deadline", "full duplex", "body"}
	for what, c := range map[string]struct {
		in, runs int32 // which run sets them, of how many
		panics   bool
		want     []string
	}{
		"the first of two":  {1, 2, false, []string{"body"}},
		"the second of two": {2, 2, false, all},
		"the only one":      {1, 1, false, all},
		"one that panics":   {1, 1, true, all[:3]},
	} {
		inFakeTime(t, what, func(t *testing.T, r *redistest.Server) {
			var first http.ResponseWriter
			p := newPair(t, r, middleware.Options{}, func(p *pair, run int32, w http.ResponseWriter, req *http.Request) {
				add(session.FromContext(req.Context()))
				if run == c.in {
					must(t, control(w))
				}
				if run == 1 {
					first = w
				} else if err := control(first); err == nil {
					t.Error("the first run has set a deadline during the second run")
				}
				if run < c.runs {
					p.another(t, "/add")
				}
				if c.panics {
					panic(http.ErrAbortHandler)
				}
				fmt.Fprint(w, "body")
			})
			w := &controlled{ResponseRecorder: httptest.NewRecorder()}
			func() {
				defer func() { _ = recover() }()
				p.serve(t, w, func(*http.Request) {})
			}()
			p.wantRuns(t, c.runs)
			if !slices.Equal(w.calls, c.want) {
				t.Errorf("the connection has seen %q, want %q", w.calls, c.want)
			}
		})
	}
}

// If the connection lacks a feature, the handler gets the same error as without sessions, in each
// mode.
func TestDeadlinesThatAreNotSupported(t *testing.T) {
	inBubble(t, func(t *testing.T, r *redistest.Server) {
		p := newPair(t, r, middleware.Options{}, func(_ *pair, _ int32, w http.ResponseWriter, _ *http.Request) {
			if err := control(w); strings.Count(fmt.Sprint(err), http.ErrNotSupported.Error()) != 3 {
				t.Errorf("the error is %v", err)
			}
		})
		for _, method := range []string{http.MethodGet, http.MethodPost} {
			p.serve(t, httptest.NewRecorder(), func(r *http.Request) { r.Method = method })
		}
		p.wantRuns(t, 2)
	})
}

package clustertest

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/middleware"
	"github.com/a2139e8d/latchkey/session"
	"github.com/a2139e8d/latchkey/store"
)

// A stream is a request that stays open until its context ends.
type stream struct {
	id    string     // of its session
	ended chan error // the cause
}

// Streams checks that the streams of one process end when another process ends their sessions, and that no others
// end. It returns the IDs of the sessions.
//
// The streams get more than the promised two seconds, since the machine may be busy. The tests of package
// middleware check the two seconds.
func Streams(t *testing.T, here, there *store.Store) (ids []string) {
	t.Helper()
	const users = 40 // so many that their sessions are in slots of all nodes
	opened := make(chan *stream, 1)
	h := serve(t, here, opened)
	end := serve(t, there, nil)
	open, leave := context.WithCancel(t.Context())
	defer leave()
	all := make([]*stream, users)
	for i := range all {
		in := httptest.NewRecorder()
		h.ServeHTTP(in, httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/login?user="+user(i), nil))
		if in.Code != http.StatusOK || len(in.Result().Cookies()) == 0 {
			t.Fatalf("a login was answered with %d %s", in.Code, in.Body)
		}
		r := httptest.NewRequestWithContext(open, http.MethodGet, "/stream", nil)
		r.AddCookie(in.Result().Cookies()[0])
		go h.ServeHTTP(httptest.NewRecorder(), r)
		all[i] = <-opened
		ids = append(ids, all[i].id)
	}
	late := time.After(2 * patience)
	for i := range users / 2 {
		out := httptest.NewRecorder()
		end.ServeHTTP(out, httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/end-all?user="+user(i), nil))
		if out.Code != http.StatusOK {
			t.Errorf("EndAll was answered with %d %s", out.Code, out.Body)
		}
	}
	for i, s := range all[:users/2] {
		select {
		case cause := <-s.ended:
			if !errors.Is(cause, session.ErrEnded) {
				t.Errorf("the stream of %s ends because of %v", user(i), cause)
			}
		case <-late:
			t.Fatalf("the stream of %s goes on", user(i))
		}
	}
	<-time.After(1500 * time.Millisecond) // a round of the watch for the others
	for _, s := range all[users/2:] {
		if len(s.ended) > 0 {
			t.Errorf("a stream has ended because of %v, but its session has not ended", <-s.ended)
		}
	}
	leave()
	for _, s := range all[users/2:] {
		<-s.ended
	}
	return ids
}

func user(i int) string { return fmt.Sprint("user", i) }

// serve returns the handler of a process.
func serve(t *testing.T, st *store.Store, opened chan<- *stream) http.Handler {
	t.Helper()
	sessions, err := middleware.New(st, middleware.Options{Keys: [][]byte{[]byte(strings.Repeat("key ", 8))}, Cookie: http.Cookie{Name: "sid"}})
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/login", func(_ http.ResponseWriter, r *http.Request) {
		session.FromContext(r.Context()).Login(r.FormValue("user"))
	})
	mux.HandleFunc("/stream", func(w http.ResponseWriter, r *http.Request) {
		if err := http.NewResponseController(w).Flush(); err != nil {
			t.Error(err)
		}
		s := &stream{session.FromContext(r.Context()).ID(), make(chan error, 1)}
		opened <- s
		<-r.Context().Done()
		s.ended <- context.Cause(r.Context())
	})
	mux.HandleFunc("/end-all", func(w http.ResponseWriter, r *http.Request) {
		if _, err := sessions.EndAll(r.Context(), r.FormValue("user")); err != nil {
			http.Error(w, err.Error(), middleware.Status(err))
		}
	})
	return sessions.Handler(mux)
}

// Two processes that know different nodes have streams with sessions on all nodes.
func streamsOnAllNodes(s *site) {
	on := make(map[*redistest.Server]int)
	for _, id := range Streams(s.T, s.store(at(s.first())), s.store(at(s.second(), s.third()))) {
		tag, _, _ := strings.Cut(id, ".")
		on[s.Owner(s.T, s.Slot(s.T, "{"+tag+"}"))]++
	}
	for _, node := range s.Nodes[:3] {
		if on[node] == 0 {
			s.Errorf("no stream had its session on %s", node.Addr)
		}
	}
}

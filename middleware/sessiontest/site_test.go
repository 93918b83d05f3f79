package sessiontest_test

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"testing"

	"github.com/a2139e8d/latchkey/middleware"
	"github.com/a2139e8d/latchkey/middleware/sessiontest"
	"github.com/a2139e8d/latchkey/session"
)

// A program may have an API beside its website, with the same users.
func TestSeveralSessions(t *testing.T) {
	t.Parallel()
	st := sessiontest.New(t, middleware.Options{})
	api := st.New(middleware.Options{Token: middleware.Bearer, Cookie: http.Cookie{Name: "api"}})
	mux := http.NewServeMux()
	mux.Handle("/", st.Sessions.Handler(app(st.Sessions)))
	mux.Handle("POST /api/login", api.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s := session.FromContext(r.Context())
		s.Login("ann")
		if err := s.Commit(r.Context()); err != nil {
			return
		}
		token, err := api.Token(r.Context())
		if err != nil {
			t.Errorf("Token: %v", err)
		}
		fmt.Fprint(w, token)
	})))
	st.Serve(mux)
	asAnnsBrowser := st.Client(asAnn)
	res, err := st.Client(nil).Post(st.URL+"/api/login", "", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if token, err := io.ReadAll(res.Body); err != nil || res.StatusCode != 200 || len(token) == 0 {
		t.Fatalf("status %d, token %q, error %v", res.StatusCode, token, err)
	}
	listed, err := st.Sessions.List(t.Context(), "ann")
	if err != nil || len(listed) != 2 || st.Session(asAnnsBrowser).User() != "ann" {
		t.Errorf("ann has the sessions %+v, error %v", listed, err)
	}
}

// A stream that a test has left open does not delay the end of the test.
func TestAStreamThatIsLeftOpenEnds(t *testing.T) {
	t.Parallel()
	var stream io.Reader
	t.Run("the test", func(t *testing.T) {
		st := sessiontest.New(t, middleware.Options{})
		st.Serve(st.Sessions.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		})))
		res, err := st.Client(one).Get(st.URL)
		if err != nil {
			t.Fatal(err)
		}
		stream = res.Body
	})
	if _, err := io.ReadAll(stream); os.IsTimeout(err) {
		t.Errorf("the stream ended when its client gave up: %v", err)
	}
}

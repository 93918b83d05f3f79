package frameworks

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/a2139e8d/latchkey/middleware"
	"github.com/a2139e8d/latchkey/session"
	"github.com/gorilla/mux"
)

// routeOfMux is an Options.Label for gorilla/mux.
func routeOfMux(r *http.Request) string {
	route := mux.CurrentRoute(r)
	if route == nil {
		return r.Method + ", no route"
	}
	path, _ := route.GetPathTemplate()
	return r.Method + " " + path
}

// The sessions work inside gorilla/mux, and around it. Inside, Options.Label can ask for the route, and routes
// may have modes.
func TestMux(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, label string
		option      func(*http.Request) string
		around      bool
		mode        int // the status of a route with a mode
	}{
		{"in Use", "POST", nil, false, 200},
		{"in Use, with a label", "POST /cart/{item}", routeOfMux, false, 200},
		{"around", "POST", nil, true, 500},
		{"around, with a label", "POST, no route", routeOfMux, true, 500},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t, middleware.Options{Mode: middleware.ByMethod, Label: test.option}, func(sessions *middleware.Sessions) http.Handler {
				r := mux.NewRouter()
				r.HandleFunc("/cart/{item}", func(w http.ResponseWriter, r *http.Request) {
					add(session.FromContext(r.Context()), 1)
					for q := range sessions.Requests() {
						fmt.Fprint(w, mux.Vars(r)["item"], " ", q.Label)
					}
				})
				r.Handle("/mode", sessions.ReadOnly(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					fmt.Fprint(w, inCart(session.FromContext(r.Context())))
				})))
				if test.around {
					return sessions.Handler(r)
				}
				r.Use(http.NewCrossOriginProtection().Handler, sessions.Handler)
				return r
			})
			v := newVisitor(t, s)
			v.post("/cart/7") // a new session, which no request holds
			v.post("/cart/7").want(t, 200, "7 "+test.label)
			v.get("/mode").want(t, test.mode, "*")
			v.get("/none").want(t, 404, "*")
		})
	}
}

package middleware_test

import (
	"net/http"
	"testing"

	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/middleware"
)

// ASVS 14.3.2: a handler's own no-store stays on a page that is made of the session.
func TestAHandlersNoStoreStays(t *testing.T) {
	t.Parallel()
	mux := app()
	mux.HandleFunc("/account", func(w http.ResponseWriter, req *http.Request) {
		w.Header().Set("Cache-Control", "no-store")
		mux.ServeHTTP(w, as(req, "/get"))
	})
	s := newSite(t, redistest.Embedded(t).Pool(t, 4), middleware.Options{}, mux)
	v := newVisitor(t)
	v.get(s.URL+"/add").want(t, 200, "1")
	a := v.get(s.URL + "/account")
	a.want(t, 200, "1")
	if got := a.Header.Values("Cache-Control"); len(got) != 1 || got[0] != "no-store" {
		t.Errorf("Cache-Control is %q", got)
	}
}

package middleware

import (
	"net/http"
	"slices"
)

// ByMethod is an Options.Mode: GET, HEAD, OPTIONS and TRACE are Optimistic, so they wait for no other
// request if they only read, and all other methods are Exclusive.
//
//	sessions, err := middleware.New(st, middleware.Options{Keys: keys, Mode: middleware.ByMethod})
//
// A handler of a GET that writes to the session may therefore run twice, see [Optimistic]. A route with a mode
// of its own keeps that mode.
func ByMethod(r *http.Request) Mode {
	if slices.Contains(safeMethods, r.Method) {
		return Optimistic
	}
	return Exclusive
}

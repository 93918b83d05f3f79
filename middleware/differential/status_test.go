package differential

import (
	"fmt"
	"io"
	"net/http"
)

func statusCases() []testCase {
	cases := []testCase{
		{name: "status: nothing is written", handler: plain(func(http.ResponseWriter, *http.Request) {})},
		{name: "status: written twice", handler: plain(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(404)
			w.WriteHeader(500)
		})},
		{name: "status: after an empty write", handler: plain(func(w http.ResponseWriter, _ *http.Request) {
			w.Write(nil)
			w.WriteHeader(404)
		})},
		{name: "status: after a flush", session: early, handler: plain(func(w http.ResponseWriter, _ *http.Request) {
			w.(http.Flusher).Flush()
			w.WriteHeader(404)
			io.WriteString(w, "body")
		})},
		{name: "status: http.Redirect", handler: plain(func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "/elsewhere?a=b", http.StatusSeeOther)
		})},
		{name: "status: http.NotFound", handler: plain(http.NotFound)},
		{name: "status: 101 without a hijack", on: http1, request: request{after: "\r\n"}, handler: plain(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Connection", "close")
			w.WriteHeader(101)
		})},
	}
	for _, status := range []int{200, 201, 204, 205, 206, 299, 304, 404, 500, 599, 600, 999} {
		cases = append(cases, testCase{name: fmt.Sprintf("status: %d with a body", status), handler: func(x *exchange, w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("X-Handler", "yes")
			w.WriteHeader(status)
			x.write(w, "body")
		}})
	}
	for _, status := range []int{204, 304, 404} {
		cases = append(cases, testCase{name: fmt.Sprintf("status: %d without a body", status), handler: plain(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(status)
		})})
	}
	for _, status := range []int{0, 1000} {
		cases = append(cases, invalidStatus(status)...)
	}
	return cases
}

// invalidStatus returns cases with a status that net/http refuses by a panic, but only where it
// would be used.
func invalidStatus(status int) []testCase {
	name := func(when string) string { return fmt.Sprintf("status: invalid %d, %s", status, when) }
	return []testCase{
		{name: name("at first"), handler: plain(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) })},
		{name: name("after a status"), handler: plain(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(200)
			w.WriteHeader(status)
		})},
		{name: name("after the body"), handler: plain(func(w http.ResponseWriter, _ *http.Request) {
			io.WriteString(w, "body")
			w.WriteHeader(status)
		})},
		{name: name("after a flush"), session: early, handler: plain(func(w http.ResponseWriter, _ *http.Request) {
			w.(http.Flusher).Flush()
			w.WriteHeader(status)
		})},
	}
}

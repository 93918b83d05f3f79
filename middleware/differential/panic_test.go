package differential

import (
	"errors"
	"io"
	"net/http"
	"runtime"
	"slices"
	"strings"
)

func panicCases() []testCase {
	return slices.Concat(endings(), recoveries())
}

// endings are the ways to end a handler but by returning, at different times.
func endings() (cases []testCase) {
	for _, end := range []struct {
		name string
		do   func()
	}{
		{"panic", func() { panic("boom") }},
		{"panic with an error", func() { panic(errors.New("boom")) }},
		{"ErrAbortHandler", func() { panic(http.ErrAbortHandler) }},
		{"Goexit", runtime.Goexit},
	} {
		ending := func(before func(w http.ResponseWriter)) handler {
			return plain(func(w http.ResponseWriter, _ *http.Request) {
				before(w)
				end.do()
			})
		}
		cases = append(cases,
			testCase{name: end.name + ": at once", handler: ending(func(http.ResponseWriter) {})},
			testCase{name: end.name + ": after a status", handler: ending(func(w http.ResponseWriter) { w.WriteHeader(404) })},
			testCase{name: end.name + ": after a short body", handler: ending(func(w http.ResponseWriter) { io.WriteString(w, "body") })},
			testCase{name: end.name + ": after a flush", session: early, handler: ending(func(w http.ResponseWriter) {
				io.WriteString(w, "body")
				w.(http.Flusher).Flush()
			})},
		)
	}
	return append(cases,
		testCase{name: "panic: after 5000 bytes", session: never, handler: plain(func(w http.ResponseWriter, _ *http.Request) {
			io.WriteString(w, strings.Repeat("x", 5000))
			panic("boom")
		})},
	)
}

// recoveries are panics that somebody answers.
func recoveries() []testCase {
	boom := plain(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X-Half", "done")
		panic("boom")
	})
	late := plain(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X-Half", "done")
		w.WriteHeader(201)
		io.WriteString(w, "half")
		panic("boom")
	})
	return []testCase{
		{name: "recovered inside", handler: plain(func(w http.ResponseWriter, _ *http.Request) {
			defer func() {
				recover()
				http.Error(w, "sorry", 500)
			}()
			panic("boom")
		})},
		{name: "recovered outside: after a header", session: never, outside: recovering, handler: boom},
		{name: "recovered outside: after a body", session: never, outside: recovering, handler: late},
		{name: "recovered outside: answered through the inner writer", session: never, outside: recoveringInside, handler: inner(boom)},
		{name: "recovered outside: answered through the inner writer after a body", session: never, outside: recoveringInside, handler: inner(late)},
		{name: "recovered outside: flushed through the inner writer", session: never, outside: recoveringInside,
			handler: inner(func(x *exchange, w http.ResponseWriter, r *http.Request) {
				defer func() {
					x.afterwards = func() {
						w.(http.Flusher).Flush()
						io.WriteString(w, "flushed")
					}
				}()
				panic("boom")
			})},
	}
}

// recovering answers a panic of next.
func recovering(x *exchange, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			if p := recover(); p != nil {
				x.note("recovered %v", p)
				http.Error(w, "sorry", 500)
			}
		}()
		next.ServeHTTP(w, r)
	})
}

// recoveringInside does so through the writer that the handler had, as some frameworks do.
func recoveringInside(x *exchange, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			recover()
			x.afterwards()
		}()
		next.ServeHTTP(w, r)
	})
}

// inner lets recoveringInside have the handler's writer.
func inner(h handler) handler {
	return func(x *exchange, w http.ResponseWriter, r *http.Request) {
		x.afterwards = func() { http.Error(w, "sorry", 500) }
		h(x, w, r)
	}
}

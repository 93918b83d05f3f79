package middleware

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"testing"

	"github.com/a2139e8d/latchkey/store"
)

// Headers of browsers and other clients, and whether the request is a navigation.
func TestNavigates(t *testing.T) {
	t.Parallel()
	const (
		chrome  = "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,image/apng,*/*;q=0.8"
		firefox = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8" // and Safari
	)
	for name, tt := range map[string]struct {
		header map[string]string
		want   bool
	}{
		"Chrome, a link":           {map[string]string{"Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document", "Sec-Fetch-User": "?1", "Accept": chrome}, true},
		"Firefox, a form":          {map[string]string{"Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document", "Accept": firefox, "Content-Type": "application/x-www-form-urlencoded"}, true},
		"a WebView":                {map[string]string{"Sec-Fetch-Mode": "navigate", "X-Requested-With": "org.example.app", "Accept": chrome}, true},
		"a worker's preload":       {map[string]string{"Sec-Fetch-Mode": "navigate", "Service-Worker-Navigation-Preload": "true", "Accept": chrome}, true},
		"Safari 15, a link":        {map[string]string{"Accept": firefox}, true},
		"Chrome over plain HTTP":   {map[string]string{"Accept": chrome}, true},
		"remade by a worker":       {map[string]string{"Sec-Fetch-Mode": "same-origin", "Sec-Fetch-Dest": "empty", "Accept": firefox}, true},
		"fetch, of the same site":  {map[string]string{"Sec-Fetch-Mode": "same-origin", "Accept": "*/*"}, false},
		"fetch":                    {map[string]string{"Sec-Fetch-Mode": "cors", "Sec-Fetch-Dest": "empty", "Accept": "*/*"}, false},
		"fetch, without CORS":      {map[string]string{"Sec-Fetch-Mode": "no-cors", "Sec-Fetch-Dest": "empty", "Accept": "*/*"}, false},
		"fetch that asks for HTML": {map[string]string{"Sec-Fetch-Mode": "cors", "Accept": "text/html, application/xhtml+xml"}, false}, // Turbo
		"fetch over plain HTTP":    {map[string]string{"Accept": "*/*"}, false},
		"jQuery over plain HTTP":   {map[string]string{"Accept": "text/html, */*; q=0.01", "X-Requested-With": "XMLHttpRequest"}, false},
		"pjax over plain HTTP":     {map[string]string{"Accept": firefox, "X-Requested-With": "XMLHttpRequest"}, false},
		"an image":                 {map[string]string{"Sec-Fetch-Mode": "no-cors", "Sec-Fetch-Dest": "image", "Accept": "image/avif,image/webp,*/*;q=0.8"}, false},
		"a websocket":              {map[string]string{"Sec-Fetch-Mode": "websocket"}, false},
		"an event stream":          {map[string]string{"Sec-Fetch-Mode": "cors", "Accept": "text/event-stream"}, false},
		"Go":                       {nil, false},
		"a link prefetched":        {map[string]string{"Sec-Fetch-Mode": "no-cors", "Sec-Purpose": "prefetch", "Accept": "*/*"}, false},
		"a page prefetched":        {map[string]string{"Sec-Fetch-Mode": "navigate", "Sec-Purpose": "prefetch", "Accept": chrome}, false},
		"a page prerendered":       {map[string]string{"Sec-Fetch-Mode": "navigate", "Sec-Purpose": "prefetch; prerender", "Accept": chrome}, false},
		"prefetched, plain HTTP":   {map[string]string{"Sec-Purpose": "prefetch", "Accept": firefox}, false},
		"nonsense":                 {map[string]string{"Sec-Fetch-Mode": "Navigate, cors", "Accept": chrome}, false},
	} {
		h := http.Header{}
		for key, value := range tt.header {
			h.Set(key, value)
		}
		if got := navigates(h); got != tt.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// A handler's context is made cancelable only if that is needed. This must not show: after any calls, in any order,
// the context says the same as a context of package context.
func TestAHandlersContextIsLikeAnyOther(t *testing.T) {
	t.Parallel()
	type valueKey struct{}
	type world struct {
		ctx       context.Context
		end       context.CancelCauseFunc
		endServer context.CancelCauseFunc
		children  []context.Context
	}
	steps := []struct {
		name string
		do   func(*world)
	}{
		{"asks for Done", func(w *world) { w.ctx.Done() }},
		{"derives a context", func(w *world) {
			child, cancel := context.WithCancel(w.ctx)
			t.Cleanup(cancel)
			w.children = append(w.children, child)
		}},
		{"the lock is lost", func(w *world) { w.end(store.ErrLost) }},
		{"the handler returns", func(w *world) { w.end(nil) }},
		{"the client goes away", func(w *world) { w.endServer(errors.ErrUnsupported) }},
		{"a derived context is canceled", func(w *world) {
			_, cancel := context.WithCancelCause(w.ctx)
			cancel(errors.ErrUnsupported)
		}},
	}
	server := func() (context.Context, context.CancelCauseFunc) {
		return context.WithCancelCause(context.WithValue(t.Context(), valueKey{}, "value"))
	}
	makeOurs := func() *world {
		ctx, cancel := server()
		rq := &request{base: new(http.Request).WithContext(ctx)}
		rq.context.Context, rq.context.request = rq.base.Context(), rq
		return &world{ctx: &rq.context, end: rq.context.endContext, endServer: cancel}
	}
	makeTheirs := func() *world {
		above, cancel := server()
		ctx, end := context.WithCancelCause(above)
		return &world{ctx: ctx, end: end, endServer: cancel}
	}
	type saying struct {
		err, cause error
		done       bool
		value      any
	}
	says := func(ctx context.Context, askDone bool) saying {
		s := saying{err: ctx.Err(), cause: context.Cause(ctx), value: ctx.Value(valueKey{})}
		if askDone {
			select {
			case <-ctx.Done():
				s.done = true
			default:
			}
		}
		return s
	}
	const longest = 4
	var try func(path []int)
	try = func(path []int) {
		ours, theirs := makeOurs(), makeTheirs()
		var names []string
		for i, step := range path {
			steps[step].do(ours)
			steps[step].do(theirs)
			names = append(names, steps[step].name)
			last := i == len(path)-1 // asking for Done earlier would be a step of its own
			if got, want := says(ours.ctx, last), says(theirs.ctx, last); got != want {
				t.Errorf("%q: %+v, want %+v", names, got, want)
			}
			for j := range ours.children { // at once, with no goroutine in between
				if got, want := says(ours.children[j], true), says(theirs.children[j], true); got != want {
					t.Errorf("%q, a derived context: %+v, want %+v", names, got, want)
				}
			}
		}
		ours.end(nil)
		theirs.end(nil)
		for step := range steps {
			if len(path) < longest {
				try(append(slices.Clone(path), step))
			}
		}
	}
	try(nil)
}

// A handler may print its context while another goroutine waits for its end.
func TestAHandlersContextCanBePrinted(t *testing.T) {
	t.Parallel()
	rq := &request{base: new(http.Request).WithContext(t.Context())}
	rq.context.Context, rq.context.request = rq.base.Context(), rq
	var both sync.WaitGroup
	both.Go(func() { rq.context.Done() })
	both.Go(func() { _ = fmt.Sprint(&rq.context) })
	both.Wait()
	rq.context.endContext(nil)
}

// An error may wrap several errors. The log has the kind of the one that says what to do.
func TestTheKindOfSeveralErrors(t *testing.T) {
	t.Parallel()
	for want, err := range map[string]error{
		"timeout":     errors.Join(store.ErrUnavailable, store.ErrTimeout), // Redis was silent only for the rest of the wait
		"unavailable": errors.Join(store.ErrGone, store.ErrLost, store.ErrUnavailable),
		"gone":        errors.Join(store.ErrLost, store.ErrGone),
		"no_access":   errors.Join(store.ErrGone, errNoAccess),
	} {
		if got := ruleOf(err).kind; got != want {
			t.Errorf("%v is of kind %s, want %s", err, got, want)
		}
	}
}

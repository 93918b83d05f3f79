package middleware

import (
	"reflect"
	"strings"
)

// # chi around the sessions
//
// A chi router keeps the state of its search in a *chi.Context, a value in the request's context: how much of the path
// is left for the routers below, and the parameters found so far. If the sessions are used inside the router, both runs
// of an optimistic handler have the same *chi.Context. Without the code below, a second run would search on from where
// the first run has stopped, and end in a 404.
//
// The next router asks the request's context for the *chi.Context before it changes that. At this moment the context
// of the first run makes a copy, which is put back before the second run.
//
// The middleware does not import chi: it knows the type by its name.

// A routing is the state of the chi router around the sessions. The zero routing is none.
type routing struct {
	router reflect.Value // the chi.Context
	copied reflect.Value // what it was when the first run asked for it
}

// keepRouting copies the *chi.Context that the first run has asked for, unless it was copied before.
func (c *handlerContext) keepRouting(context any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if router := reflect.ValueOf(context); c.routing == nil && !router.IsNil() {
		router = router.Elem()
		copied := reflect.New(router.Type()).Elem()
		copied.Set(router)
		cloneSlices(copied)
		c.routing = &routing{router, copied}
	}
}

// restoreRouting is called when the first run has ended. It reverts what that run has done to the *chi.Context.
func (c *handlerContext) restoreRouting() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.routing == nil {
		c.routing = new(routing) // so a goroutine left over from the first run asks too late
		return
	}
	c.routing.router.Set(c.routing.copied)
}

// isChiContext reports whether v is a *chi.Context, of any major version.
func isChiContext(v any) bool {
	t := reflect.TypeOf(v)
	if t == nil || t.Kind() != reflect.Pointer || t.Elem().Kind() != reflect.Struct {
		return false
	}
	rest, ok := strings.CutPrefix(t.Elem().PkgPath(), "github.com/go-chi/chi")
	return ok && (rest == "" || rest[0] == '/') && t.Elem().Name() == "Context"
}

// cloneSlices gives each slice in a struct an array of its own, since chi overwrites the elements.
func cloneSlices(v reflect.Value) {
	for i := range v.NumField() {
		switch f := v.Field(i); {
		case f.Kind() == reflect.Struct:
			cloneSlices(f)
		case f.Kind() == reflect.Slice && f.Len() > 0:
			f = reflect.NewAt(f.Type(), f.Addr().UnsafePointer()).Elem() // the field may be unexported
			f.Set(reflect.AppendSlice(reflect.Zero(f.Type()), f))
		}
	}
}

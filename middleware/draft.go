package middleware

import (
	"maps"
	"net/http"
	"slices"
	"time"
)

// A draft is what the first run of an optimistic handler does to its response and its connection, beside
// the body. The second run has the same ResponseWriter around it, and must find none of that. Nor must it
// find what a goroutine of the first run puts into the header later. So the handler has a header of its
// own until the response begins, and its deadlines wait until then, too.
type draft struct {
	header http.Header // the handler's
	shown  http.Header // what the header around us has of it
	waits  []func()    // what is to be done to the connection
}

// newDraft returns the draft of a handler that may run again, or nil.
func (rw *response) newDraft() *draft {
	if a := rw.request.attempt; a == nil || a.again {
		return nil
	}
	d := &draft{header: rw.before.Clone(), shown: rw.before}
	if d.header == nil {
		d.header = make(http.Header)
	}
	return d
}

// show gives the header around us what the handler has changed in its own since the last time.
func (rw *response) show() {
	d := rw.draft
	if d == nil {
		return
	}
	live := rw.inner.Header()
	for name := range d.shown {
		if _, ok := d.header[name]; !ok {
			delete(live, name)
		}
	}
	for name, values := range d.header {
		if shown, ok := d.shown[name]; !ok || !slices.Equal(values, shown) {
			live[name] = slices.Clip(values) // so that nobody appends to the other's
		}
	}
}

// note remembers what was shown, where that is not the last time.
func (d *draft) note() { d.shown = d.header.Clone() }

// publish ends the draft: there is no second run.
func (rw *response) publish() {
	if rw.draft == nil {
		return
	}
	rw.show()
	for _, do := range rw.draft.waits {
		do()
	}
}

// keepUp lets a handler that has kept its header see there what was added when the answer began. What
// it adds later, trailers, is shown at its end.
func (rw *response) keepUp() {
	if rw.draft != nil {
		maps.Copy(rw.draft.header, rw.inner.Header().Clone())
		rw.draft.note()
	}
}

// What follows is what http.ResponseController looks for.

// SetReadDeadline is described in http.ResponseController.
func (rw *response) SetReadDeadline(t time.Time) error {
	return control[interface{ SetReadDeadline(time.Time) error }](rw, func(c *http.ResponseController) error {
		return c.SetReadDeadline(t)
	})
}

// SetWriteDeadline is described in http.ResponseController.
func (rw *response) SetWriteDeadline(t time.Time) error {
	return control[interface{ SetWriteDeadline(time.Time) error }](rw, func(c *http.ResponseController) error {
		return c.SetWriteDeadline(t)
	})
}

// EnableFullDuplex is described in http.ResponseController.
func (rw *response) EnableFullDuplex() error {
	return control[interface{ EnableFullDuplex() error }](rw, (*http.ResponseController).EnableFullDuplex)
}

// control does to the connection what a writer that is a T can do: at once, or if the handler may run
// again, when the answer begins.
func control[T any](rw *response, do func(*http.ResponseController) error) error {
	around := http.NewResponseController(rw.inner)
	switch {
	case rw.failed == errRunAgain:
		return rw.failed
	case rw.draft == nil || rw.begun || rw.failed != nil:
		return do(around)
	case !offers[T](rw.inner):
		return http.ErrNotSupported
	}
	rw.draft.waits = append(rw.draft.waits, func() { _ = do(around) })
	return nil
}

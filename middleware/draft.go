package middleware

import (
	"maps"
	"net/http"
	"slices"
	"time"
)

// A draft is what the first run of an optimistic handler does to its response and its connection, apart from the
// body. The second run has the same ResponseWriter around it, and must not see any of the first run's work, nor what
// a goroutine of the first run adds to the header later. So until the response begins, the handler has a separate
// header, and the deadlines that it sets are delayed. In mode Lazy there is no draft: whether a handler may run again
// is known only when its session starts, and it may have used both before. So the deadlines of the first run stay,
// and a header that it keeps is the second run's, too.
type draft struct {
	header  http.Header // the handler's
	shown   http.Header // what was copied from header to the header around us
	delayed []func()    // calls that change the connection when the response begins
}

// newDraft returns the draft of a handler that may run again.
func (rw *response) newDraft() *draft {
	d := &draft{header: rw.before.Clone(), shown: rw.before}
	if d.header == nil {
		d.header = make(http.Header)
	}
	return d
}

// showHeader copies to the header around us what the handler has changed in its own header since the last call.
func (rw *response) showHeader() {
	d, live := rw.draft, rw.around.Header()
	for name := range d.shown {
		if _, ok := d.header[name]; !ok {
			delete(live, name)
		}
	}
	for name, values := range d.header {
		if shown, ok := d.shown[name]; !ok || !slices.Equal(values, shown) {
			live[name] = slices.Clip(values) // so that an append to one header does not change the other
		}
	}
}

// publishDraft ends the draft: there is no second run.
func (rw *response) publishDraft() {
	rw.showHeader()
	for _, do := range rw.draft.delayed {
		do()
	}
}

// showSentHeader adds to the handler's header what was added when the response began, for a handler that has
// kept its header. The trailers that the handler adds later are shown when it ends.
func (rw *response) showSentHeader() {
	maps.Copy(rw.draft.header, rw.around.Header().Clone())
	rw.draft.shown = rw.draft.header.Clone()
}

// http.ResponseController looks for the methods below.

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

// control calls do, which needs a writer of type T. If the handler may run again, do is called when the response
// begins, and otherwise at once.
func control[T any](rw *response, do func(*http.ResponseController) error) error {
	around := http.NewResponseController(rw.around)
	switch {
	case rw.failed != nil && rw.request.runsAgain():
		return rw.failed
	case rw.draft == nil || rw.begun || rw.failed != nil:
		return do(around)
	case !offers[T](rw.around):
		return http.ErrNotSupported
	}
	rw.draft.delayed = append(rw.draft.delayed, func() { _ = do(around) })
	return nil
}

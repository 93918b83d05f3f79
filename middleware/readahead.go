package middleware

import (
	"bytes"
	"io"
	"net/http"
)

// readAhead reads a small body before the session is locked and returns one with
// the same content, for two reasons: a client that sends its body slowly must not
// hold its session meanwhile, and net/http notices that a client has gone away only
// once the body is read, so its place among the waiting requests would stay taken.
//
// Bodies of unknown length or longer than limit are left alone, since they may
// be streams; so are those whose client waits for permission to send them.
func readAhead(r *http.Request, limit int) io.ReadCloser {
	if r.Body == nil || r.ContentLength <= 0 || r.ContentLength > int64(limit) || r.Header.Get("Expect") != "" {
		return r.Body
	}
	body, err := io.ReadAll(io.LimitReader(r.Body, r.ContentLength))
	rest := io.Reader(r.Body)
	if err != nil {
		rest = failing{err} // the handler gets it where it would have
	}
	return struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(body), rest), r.Body}
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

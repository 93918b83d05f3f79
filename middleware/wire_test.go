package middleware_test

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/memnet"
)

// A wire is one connection to a server, for what http.Client hides: which bytes there are, and
// whether the connection stays whole.
type wire struct {
	net.Conn
	t *testing.T
	*bufio.Reader
}

func (w *wire) Read(p []byte) (int, error) { return w.Reader.Read(p) }

func dial(t *testing.T, srv *httptest.Server) *wire {
	t.Helper()
	c, err := memnet.DialContext(t.Context(), "tcp", srv.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	if err := c.SetDeadline(time.Now().Add(30 * time.Second)); err != nil {
		t.Fatal(err)
	}
	return &wire{c, t, bufio.NewReader(c)}
}

func (w *wire) send(text string) {
	w.t.Helper()
	if _, err := io.WriteString(w, text); err != nil {
		w.t.Fatal(err)
	}
}

// read reads one answer, informational ones included.
func (w *wire) read() answer {
	res, err := http.ReadResponse(w.Reader, nil)
	if err != nil {
		return answer{Response: &http.Response{}, err: err}
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	return answer{res, string(body), err}
}

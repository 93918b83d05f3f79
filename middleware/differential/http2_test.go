package differential

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"strings"
	"sync/atomic"
)

// overHTTP2 sends the request, waits for the end of its answer, and sends another.
func (x *exchange) overHTTP2(conn net.Conn) []answer {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	transport := x.transport(conn)
	defer transport.CloseIdleConnections()
	answers := []answer{x.roundTrip(ctx, transport, x.c.request)}
	x.arrived.add(nil, true)
	next := request{target: "/second"}
	return append(answers, x.roundTrip(ctx, transport, next))
}

var errOneConnection = errors.New("the connection is not used again")

// transport returns a client on conn, which dials no other.
func (x *exchange) transport(conn net.Conn) *http.Transport {
	var used atomic.Bool
	dial := func(context.Context, string, string) (net.Conn, error) {
		if used.Swap(true) {
			return nil, errOneConnection
		}
		return conn, nil
	}
	t := &http.Transport{
		DialContext:           dial,
		DisableCompression:    true,
		ExpectContinueTimeout: patience,
		Protocols:             new(http.Protocols),
	}
	t.Protocols.SetUnencryptedHTTP2(true)
	return t
}

func (x *exchange) roundTrip(ctx context.Context, transport *http.Transport, r request) (a answer) {
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		Got1xxResponse: func(status int, h textproto.MIMEHeader) error {
			a.info = append(a.info, preamble{status: status, line: http.StatusText(status), header: http.Header(h).Clone()})
			return nil
		},
	})
	req, err := x.newRequest(ctx, r)
	if err != nil {
		a.end = err.Error()
		return a
	}
	resp, err := transport.RoundTrip(req)
	if err != nil {
		a.end = addresses.ReplaceAllString(err.Error(), "ADDR")
		return a
	}
	defer resp.Body.Close()
	a.preamble = preamble{status: resp.StatusCode, line: resp.Status, header: resp.Header}
	p := make([]byte, 16<<10)
	for err == nil {
		var n int
		n, err = resp.Body.Read(p)
		a.body = append(a.body, p[:n]...)
		x.arrived.add(p[:n], false)
	}
	a.end = "complete"
	if err != io.EOF {
		a.end = err.Error()
	}
	a.trailer = resp.Trailer
	return a
}

func (x *exchange) newRequest(ctx context.Context, r request) (*http.Request, error) {
	req, err := http.NewRequestWithContext(ctx, r.verb(), "http://example.test"+r.path(), nil)
	if err != nil {
		return nil, err
	}
	if r.method != "" {
		req.ContentLength = int64(len(r.body))
		req.Body = io.NopCloser(strings.NewReader(r.body))
		if r.drip {
			req.Body = dripping(r.body)
		}
		if r.body == "" {
			req.Body = http.NoBody
		}
	}
	if r.chunked {
		req.ContentLength = -1
		if name, value, ok := strings.Cut(r.trailer, ": "); ok {
			req.Trailer = http.Header{name: {value}}
		}
	}
	for _, line := range r.header {
		name, value, _ := strings.Cut(line, ": ")
		req.Header.Add(name, value)
	}
	req.Header.Set("Cookie", x.cookie)
	return req, nil
}

// dripping reads as a client sends that is slow.
func dripping(s string) io.ReadCloser {
	r, w := io.Pipe()
	go func() {
		drip(w, s)
		w.Close()
	}()
	return r
}

package differential

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

// overHTTP1 sends the request and the next one, and returns all that comes back until the
// connection is closed.
func (x *exchange) overHTTP1(conn net.Conn) []answer {
	_ = conn.SetDeadline(time.Now().Add(patience))
	received := make(chan error, 1)
	go func() { received <- x.receive(conn) }()
	x.send(conn)
	err := <-received
	answers := parseHTTP1(x.arrived.all(), x.c.request.verb())
	if timeout, ok := err.(net.Error); ok && timeout.Timeout() {
		answers = append(answers, answer{end: "the connection stayed open"})
	}
	return answers
}

// receive reads until the connection is closed, with or without a reset: that depends on what the server had not read
// yet.
func (x *exchange) receive(conn net.Conn) error {
	p := make([]byte, 16<<10)
	for {
		n, err := conn.Read(p)
		x.arrived.add(p[:n], err != nil)
		if err != nil {
			return err
		}
	}
}

// send sends both requests, the second right after the first. It waits for the answer only if that may be long, or
// ends with the connection: if a server closes a connection before it has read all, what it has sent may be lost. The
// server need not read any of the requests, so errors are ignored.
func (x *exchange) send(conn net.Conn) {
	r := x.c.request
	first, body := x.renderHTTP1()
	next := fmt.Sprintf("GET /second %s\r\nHost: example.test\r\nCookie: %s\r\nConnection: close\r\n\r\n", x.protocol, x.cookie)
	if r.after != "" || r.then != "" {
		next = r.after
	}
	switch {
	case r.expects():
		_, _ = io.WriteString(conn, first)
		permitted := x.arrived.await(func(b []byte) bool { return bytes.Contains(b, []byte("\r\n\r\n")) }) &&
			bytes.HasPrefix(x.arrived.all(), []byte("HTTP/1.1 100 "))
		if permitted {
			_, _ = io.WriteString(conn, body+next)
		} else { // the server has answered, and waits for the body, or the end
			_ = conn.(*net.TCPConn).CloseWrite()
		}
	case r.drip:
		_, _ = io.WriteString(conn, first)
		drip(conn, body)
		_, _ = io.WriteString(conn, next)
	case r.missing > 0:
		_, _ = io.WriteString(conn, first+body)
		_ = conn.(*net.TCPConn).CloseWrite()
	case r.after != "" || r.then != "" || x.protocol == http11 && x.c.session != early:
		_, _ = io.WriteString(conn, first+body+next)
	default:
		_, _ = io.WriteString(conn, first+body)
		if x.arrived.await(func(b []byte) bool { return isWhole(b, r.verb()) }) {
			_, _ = io.WriteString(conn, next)
		}
	}
	if r.then != "" {
		x.await("\r\n\r\n")
		_, _ = io.WriteString(conn, r.then)
		x.await(r.then)
		_ = conn.(*net.TCPConn).CloseWrite()
	}
}

// pieces cuts s into a few pieces.
func pieces(s string) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		size := len(s)/5 + 1
		for s != "" {
			n := min(size, len(s))
			if !yield(s[:n]) {
				return
			}
			s = s[n:]
		}
	}
}

// drip writes s as a slow client does, until a write fails.
func drip(w io.Writer, s string) {
	for piece := range pieces(s) {
		time.Sleep(time.Millisecond) // so that a piece is on its way alone
		if _, err := io.WriteString(w, piece); err != nil {
			return // the answer was there before
		}
	}
}

func (x *exchange) renderHTTP1() (header, body string) {
	r := x.c.request
	b := new(strings.Builder)
	fmt.Fprintf(b, "%s %s %s\r\nHost: example.test\r\nCookie: %s\r\n", r.verb(), r.path(), x.protocol, x.cookie)
	if x.protocol == http10 {
		b.WriteString("Connection: keep-alive\r\n")
	}
	for _, line := range r.header {
		b.WriteString(line + "\r\n")
	}
	body = r.body
	switch {
	case r.chunked:
		b.WriteString("Transfer-Encoding: chunked\r\n")
		name, _, _ := strings.Cut(r.trailer, ":")
		if name != "" {
			fmt.Fprintf(b, "Trailer: %s\r\n", name)
		}
		body = ""
		for piece := range pieces(r.body) {
			body += fmt.Sprintf("%x\r\n%s\r\n", len(piece), piece)
		}
		body += "0\r\n"
		if name != "" {
			body += r.trailer + "\r\n"
		}
		body += "\r\n"
	case r.method != "":
		fmt.Fprintf(b, "Content-Length: %d\r\n", len(r.body)+r.missing)
	}
	return b.String() + "\r\n", body
}

// parseHTTP1 splits all that arrived into answers. The first answer is to a request with that method, all others are
// to a GET.
func parseHTTP1(b []byte, method string) (answers []answer) {
	var info []preamble
	for len(b) > 0 {
		h, rest, ok := parseHead(b)
		if !ok {
			return append(answers, answer{info: info, body: b, end: "no HTTP"})
		}
		b = rest
		if h.status >= 100 && h.status <= 199 && h.status != http.StatusSwitchingProtocols {
			info = append(info, h)
			continue
		}
		a := answer{info: info, preamble: h}
		b = a.parseBody(b, method)
		answers = append(answers, a)
		info, method = nil, http.MethodGet
	}
	if len(answers) == 0 || info != nil {
		answers = append(answers, answer{info: info, end: closed})
	}
	return answers
}

// isWhole reports whether an answer is complete. The end of the connection does not count as its end.
func isWhole(b []byte, method string) bool {
	answers := parseHTTP1(b, method)
	return len(answers) > 0 && answers[0].end == "complete" && answers[0].framing != untilClosed
}

const untilClosed = "until the end of the connection"

func parseHead(b []byte) (h preamble, rest []byte, ok bool) {
	text, rest, ok := bytes.Cut(b, []byte("\r\n\r\n"))
	lines := strings.Split(string(text), "\r\n")
	proto, status, _ := strings.Cut(lines[0], " ")
	if !ok || !strings.HasPrefix(proto, "HTTP/1.") || len(status) < 3 {
		return h, nil, false
	}
	h.line = lines[0]
	h.status, _ = strconv.Atoi(status[:3])
	h.header = parseLines(lines[1:])
	return h, rest, true
}

func parseLines(lines []string) http.Header {
	h := make(http.Header)
	for _, line := range lines {
		name, value, _ := strings.Cut(line, ": ")
		h[name] = append(h[name], value)
	}
	return h
}

// parseBody takes the answer's body from b, and returns the rest.
func (a *answer) parseBody(b []byte, method string) (rest []byte) {
	n, err := strconv.Atoi(a.header.Get("Content-Length"))
	switch {
	case a.status == http.StatusSwitchingProtocols:
		a.framing, a.body = "of another protocol", b
		return nil
	case method == http.MethodHead, a.status == http.StatusNoContent, a.status == http.StatusNotModified:
		a.framing, a.end = "none", "complete"
		return b
	case a.header.Get("Transfer-Encoding") == "chunked":
		a.framing = "chunked"
		return a.parseChunks(b)
	case err == nil && n >= 0:
		a.framing, a.end = "of declared length", "complete"
		if missing := n - len(b); missing > 0 {
			a.end = fmt.Sprintf("cut off, %d bytes are missing", missing)
			n = len(b)
		}
		a.body = b[:n]
		return b[n:]
	default:
		a.framing, a.body, a.end = untilClosed, b, "complete"
		return nil
	}
}

func (a *answer) parseChunks(b []byte) (rest []byte) {
	for {
		line, after, ok := bytes.Cut(b, []byte("\r\n"))
		size, err := strconv.ParseInt(string(line), 16, 64)
		if !ok || err != nil || int64(len(after)) < size+2 {
			a.end = "cut off"
			return nil
		}
		if size == 0 {
			b = after
			break
		}
		a.body = append(a.body, after[:size]...)
		b = after[size+2:]
	}
	a.end = "complete"
	if bytes.HasPrefix(b, []byte("\r\n")) {
		return b[2:]
	}
	lines, rest, _ := bytes.Cut(b, []byte("\r\n\r\n"))
	a.trailer = parseLines(strings.Split(string(lines), "\r\n"))
	return rest
}

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

// transport returns a client that uses conn, and dials no other connection.
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

// dripping returns a source that yields s slowly, as a slow client sends it.
func dripping(s string) io.ReadCloser {
	r, w := io.Pipe()
	go func() {
		drip(w, s)
		w.Close()
	}()
	return r
}

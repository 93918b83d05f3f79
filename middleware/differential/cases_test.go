package differential

import (
	"io"
	"net/http"
	"slices"
	"strings"
)

// A testCase is a handler and a request for it.
type testCase struct {
	name    string
	request request
	handler handler
	// outside wraps the sessions, or the bare handler if there are none.
	outside func(x *exchange, next http.Handler) http.Handler
	// session says when the answer begins, which decides what the sessions add to it.
	session moment
	on      []protocol         // all, if empty
	server  func(*http.Server) // changes its settings
}

// A handler is a http.Handler's method that can note what it sees.
type handler func(x *exchange, w http.ResponseWriter, r *http.Request)

// A moment is when an answer leaves the sessions.
type moment int

const (
	atEnd moment = iota // when the handler has returned
	early               // before that: by Flush, Hijack or a long answer
	never               // the client's answer is none of a handler inside the sessions
)

// A request is what the client sends. The zero value is a GET without a body. Another request
// follows on the same connection, for /second, to see whether it is still good.
type request struct {
	method  string
	target  string
	header  []string // lines
	body    string
	chunked bool   // the length of the body is not declared
	trailer string // a line behind a chunked body
	drip    bool   // the body is sent in small pieces, slowly
	missing int    // that many bytes of the body are declared, and never sent
	after   string // HTTP/1: sent instead of the second request
	then    string // HTTP/1: sent when an answer has begun; once it has come back, the client sends no more
}

func (r request) verb() string {
	if r.method == "" {
		return http.MethodGet
	}
	return r.method
}

func (r request) path() string {
	if r.target == "" {
		return "/"
	}
	return r.target
}

func (r request) expects() bool {
	return slices.ContainsFunc(r.header, func(line string) bool { return strings.HasPrefix(line, "Expect:") })
}

type protocol string

const (
	http10 protocol = "HTTP/1.0"
	http11 protocol = "HTTP/1.1"
	h2c    protocol = "HTTP/2"
)

var (
	protocols = []protocol{http10, http11, h2c}
	http1     = []protocol{http10, http11}
	http2     = []protocol{h2c}
	not10     = []protocol{http11, h2c} // chunked bodies and informational answers came with 1.1
)

func (c testCase) runsOn(p protocol) bool {
	return len(c.on) == 0 || slices.Contains(c.on, p)
}

var cases = slices.Concat(
	statusCases(),
	headerCases(),
	lengthCases(),
	readFromCases(),
	trailerCases(),
	informationalCases(),
	flushCases(),
	hijackCases(),
	panicCases(),
	deadlineCases(),
	bodyCases(),
	expectCases(),
	proxyCases(),
	timeoutCases(),
	compressCases(),
	routingCases(),
)

// get and head are most of the requests.
var (
	get  = request{}
	head = request{method: http.MethodHead}
)

// post returns a request with a body, whose length is declared.
func post(body string) request { return request{method: http.MethodPost, body: body} }

// plain makes a case's handler of h, which notes nothing.
func plain(h func(w http.ResponseWriter, r *http.Request)) handler {
	return func(_ *exchange, w http.ResponseWriter, r *http.Request) { h(w, r) }
}

// steps runs one handler after another. Most handlers in the cases are made of a few of those below.
func steps(all ...handler) handler {
	return func(x *exchange, w http.ResponseWriter, r *http.Request) {
		for _, do := range all {
			do(x, w, r)
		}
	}
}

func status(code int) handler {
	return plain(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) })
}

func text(s string) handler {
	return func(x *exchange, w http.ResponseWriter, _ *http.Request) { x.wrote(io.WriteString(w, s)) }
}

func copied(s string) handler {
	return func(x *exchange, w http.ResponseWriter, _ *http.Request) { x.wrote(io.Copy(w, source(s))) }
}

// set sets a line of the header.
func set(line string) handler {
	name, value, _ := strings.Cut(line, ": ")
	return plain(func(w http.ResponseWriter, _ *http.Request) { w.Header().Set(name, value) })
}

func unset(name string) handler {
	return plain(func(w http.ResponseWriter, _ *http.Request) { w.Header().Del(name) })
}

// none keeps net/http from setting a header by itself.
func none(name string) handler {
	return plain(func(w http.ResponseWriter, _ *http.Request) { w.Header()[name] = nil })
}

func flush(_ *exchange, w http.ResponseWriter, _ *http.Request) { w.(http.Flusher).Flush() }

func tryFlush(x *exchange, w http.ResponseWriter, _ *http.Request) {
	x.note("flushed, %v", http.NewResponseController(w).Flush())
}

func fullDuplex(x *exchange, w http.ResponseWriter, _ *http.Request) {
	x.note("enabled, %v", http.NewResponseController(w).EnableFullDuplex())
}

// readFive reads five bytes of the body, if there are as many.
func readFive(x *exchange, _ http.ResponseWriter, r *http.Request) {
	n, err := io.ReadFull(r.Body, make([]byte, 5))
	x.note("read %d, %v", n, err)
}

func closeBody(x *exchange, _ http.ResponseWriter, r *http.Request) {
	x.note("closed, %v", r.Body.Close())
}

// await waits until the client has received s.
func await(s string) handler {
	return func(x *exchange, _ http.ResponseWriter, _ *http.Request) { x.await(s) }
}

func boom(*exchange, http.ResponseWriter, *http.Request) { panic("boom") }

// seenOutside wraps the sessions in a handler that looks at what they have left.
func seenOutside(look handler) func(*exchange, http.Handler) http.Handler {
	return func(x *exchange, next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			next.ServeHTTP(w, r)
			look(x, w, r)
		})
	}
}

package differential

import (
	"crypto/sha256"
	"fmt"
	"go/version"
	"maps"
	"net/http"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/middleware"
)

// A transcript is what is compared of an exchange.
type transcript struct {
	seen    []string // by the handler, and around it
	log     []string // of the server, and of the sessions
	answers []answer // on the connection
}

// An answer is what the client received for one request.
type answer struct {
	info []preamble // informational answers before it
	preamble
	framing string // HTTP/1: how the end of the body is known
	body    []byte
	trailer http.Header
	end     string // complete, or why not
	asUsual bool   // the answer to the second request, like most
}

// preamble is a status line and a header.
type preamble struct {
	line   string
	status int
	header http.Header
}

// lines returns the transcript, one fact a line.
func (t transcript) lines() (lines []string) {
	for _, s := range t.seen {
		lines = append(lines, "handler: "+s)
	}
	for _, s := range t.log {
		lines = append(lines, "log: "+s)
	}
	for i, a := range t.answers {
		switch {
		case i == 0:
			lines = append(lines, a.lines()...)
		case a.asUsual:
			lines = append(lines, "next: as usual")
		default:
			for _, line := range a.lines() {
				lines = append(lines, "next "+line)
			}
		}
	}
	if len(t.answers) < 2 {
		lines = append(lines, "next: none")
	}
	return lines
}

const closed = "the connection was closed"

func (a answer) lines() (lines []string) {
	for _, h := range a.info {
		lines = append(lines, "informational: "+h.line)
		lines = append(lines, headerLines("informational: ", h.header)...)
	}
	if a.line != "" {
		lines = append(lines, "status: "+a.line)
		lines = append(lines, headerLines("header: ", a.header)...)
		if a.framing != "" {
			lines = append(lines, "body: "+a.framing)
		}
	}
	if len(a.body) > 0 {
		body := string(a.body)
		if random := boundary.FindString(a.header.Get("Content-Type")); random != "" {
			body = strings.ReplaceAll(body, random, "BOUNDARY")
		}
		lines = append(lines, "body: "+shortened(body))
	}
	lines = append(lines, headerLines("trailer: ", a.trailer)...)
	return append(lines, "end: "+a.end)
}

var (
	cookieValue = regexp.MustCompile(`sid=[\w=-]+`)
	boundary    = regexp.MustCompile(`\b[0-9a-f]{60}\b`) // of a multipart answer: random
)

// headerLines returns a header in the order of its names, without values that depend on chance.
func headerLines(prefix string, h http.Header) (lines []string) {
	for _, name := range slices.Sorted(maps.Keys(h)) {
		for _, value := range h[name] {
			if at, err := http.ParseTime(value); name == "Date" && err == nil && time.Since(at) < time.Hour {
				value = "now"
			}
			if len(value) > 1000 {
				value = shortened(value)
			}
			value = cookieValue.ReplaceAllString(value, "sid=SECRET")
			value = boundary.ReplaceAllString(value, "BOUNDARY")
			lines = append(lines, prefix+name+": "+shortened(value))
		}
	}
	return lines
}

// shortened returns s, or s in quotes if it does not fit a line as it is.
func shortened(s string) string {
	switch {
	case len(s) > 160:
		return fmt.Sprintf("%d bytes, %.20q … %.20q, %x", len(s), s, s[len(s)-20:], sha256.Sum256([]byte(s)))[:100]
	case strings.ContainsAny(s, "\r\n") || s == "":
		return fmt.Sprintf("%q", s)
	}
	return s
}

// A difference is a deviation that remains, for a reason. It must occur in all the cases, variants and protocols that
// it names.
type difference struct {
	cases    []string   // names, in which each * stands for anything
	variants []string   // likewise; all but None, if empty
	on       []protocol // all, if empty
	before   string     // if not empty, only before that version of Go
	since    string     // if not empty, only since that version of Go
	lines    []string   // as diff returns them; each * stands for anything
	why      string
}

var (
	locking = []string{"Exclusive, cookie", "Exclusive, *writes", "Optimistic, *s"}                                     // before the handler runs
	using   = []string{"Exclusive, creates", "Exclusive, *writes", "ReadOnly, reads", "Optimistic, *s", "Lazy, writes"} // the session
	opening = append([]string{"Exclusive, *cookie"}, using...)
)

var differences = slices.Concat(
	differencesOfLength,
	differencesOfStatus,
	differencesOfHeader,
	differencesOfBody,
	differencesOfEnd,
)

// unexplained returns the part of a diff that the list does not explain, or "".
func unexplained(name string, v variant, p protocol, diff []string) string {
	var problems []string
	diff = slices.Clone(diff)
	for _, d := range differences {
		if !d.isOf(name, v, p) {
			continue
		}
		for _, line := range d.lines {
			i := slices.IndexFunc(diff, func(s string) bool { return matches(line, s) })
			if i < 0 {
				problems = append(problems, fmt.Sprintf("no longer: %s (%s)", line, d.why))
				continue
			}
			diff = slices.Delete(diff, i, i+1)
		}
	}
	return strings.Join(append(diff, problems...), "\n")
}

func (d difference) isOf(name string, v variant, p protocol) bool {
	like := func(s string) func(string) bool {
		return func(pattern string) bool { return matches(pattern, s) }
	}
	return slices.ContainsFunc(d.cases, like(name)) &&
		(len(d.variants) == 0 && v.mode != middleware.None || slices.ContainsFunc(d.variants, like(v.name))) &&
		(len(d.on) == 0 || slices.Contains(d.on, p)) &&
		(d.before == "" || version.Compare(runtime.Version(), d.before) < 0) &&
		(d.since == "" || version.Compare(runtime.Version(), d.since) >= 0)
}

// checkList checks that the list names cases that exist, and that no two have the same name.
func checkList(t *testing.T) {
	seen := make(map[string]bool)
	for _, c := range cases {
		if seen[c.name] {
			t.Errorf("two cases are called %q", c.name)
		}
		seen[c.name] = true
	}
	for _, d := range differences {
		for _, pattern := range d.cases {
			if !slices.ContainsFunc(cases, func(c testCase) bool { return matches(pattern, c.name) }) {
				t.Errorf("the list of differences names %q: there is no such case", pattern)
			}
		}
		if len(d.lines) == 0 || d.why == "" {
			t.Errorf("the difference of %q has no lines, or no reason", d.cases)
		}
	}
}

// diff returns the lines that only a has, marked with "- ", and those that only b has, marked
// with "+ ", in order.
func diff(a, b []string) (lines []string) {
	if slices.Equal(a, b) {
		return nil
	}
	// common[i][j] is the length of the longest common subsequence of a[i:] and b[j:].
	common := make([][]int, len(a)+1)
	for i := range common {
		common[i] = make([]int, len(b)+1)
	}
	for i := len(a) - 1; i >= 0; i-- {
		for j := len(b) - 1; j >= 0; j-- {
			if a[i] == b[j] {
				common[i][j] = common[i+1][j+1] + 1
			} else {
				common[i][j] = max(common[i+1][j], common[i][j+1])
			}
		}
	}
	i, j := 0, 0
	for i < len(a) || j < len(b) {
		switch {
		case i < len(a) && j < len(b) && a[i] == b[j]:
			i, j = i+1, j+1
		case j == len(b) || i < len(a) && common[i+1][j] >= common[i][j+1]:
			lines = append(lines, "- "+a[i])
			i++
		default:
			lines = append(lines, "+ "+b[j])
			j++
		}
	}
	return lines
}

// matches reports whether s is like pattern, in which each * stands for anything.
func matches(pattern, s string) bool {
	first, rest, more := strings.Cut(pattern, "*")
	if !strings.HasPrefix(s, first) {
		return false
	}
	if s = s[len(first):]; !more {
		return s == ""
	}
	for i := range len(s) + 1 {
		if matches(rest, s[i:]) {
			return true
		}
	}
	return false
}

// expected returns what the transcript in variant v must be, made of the one without sessions.
func (v variant) expected(t transcript, m moment) transcript {
	t.answers = slices.Clone(t.answers)
	for i := range t.answers {
		a := &t.answers[i]
		if a.line == "" || a.asUsual {
			continue // there was none, or it is known to be right in its variant
		}
		a.header = v.withAdditions(a.header, m)
		m = atEnd // of the request that follows
	}
	return t
}

// markUsual marks the answers to the second request that are like most.
func (v variant) markUsual(answers []answer) {
	for i := range answers {
		a := &answers[i]
		usual := http.Header{"Date": {"now"}, "Content-Length": {"6"}, "Content-Type": {"text/plain; charset=utf-8"}}
		if a.line == "HTTP/1.1 200 OK" {
			usual["Connection"] = []string{"close"} // as the client wants
		}
		usual = v.withAdditions(usual, atEnd)
		a.asUsual = a.status == 200 && string(a.body) == "second" && a.end == "complete" && len(a.info) == 0 &&
			slices.Equal(headerLines("", usual), headerLines("", a.header))
	}
}

// withAdditions is the rule for what the sessions add to an answer:
//
//   - Vary names Cookie, once and in one line, if the handler has used the session, or might
//     still do so, since the answer begins before its end;
//   - such an answer is private, unless something else is said;
//   - one that sets the cookie is kept by no cache at all, whatever the handler has said.
func (v variant) withAdditions(h http.Header, m moment) http.Header {
	used := v.uses || v.opens && m == early
	if m == never || !used {
		return h
	}
	h = h.Clone()
	if !slices.Equal(h["Vary"], []string{"*"}) {
		var names []string
		for name := range strings.SplitSeq(strings.Join(h["Vary"], ","), ",") {
			if name = strings.TrimSpace(name); name != "" && !strings.EqualFold(name, "Cookie") {
				names = append(names, name)
			}
		}
		h["Vary"] = []string{strings.Join(append(names, "Cookie"), ", ")}
	}
	if v.sets {
		for name := range h {
			lower := strings.ToLower(name)
			if strings.HasSuffix(lower, "cache-control") || lower == "surrogate-control" || lower == "x-accel-expires" {
				delete(h, name)
			}
		}
		h["Cache-Control"] = []string{"no-store"}
		h["Set-Cookie"] = append(h["Set-Cookie"], "sid=SECRET; Path=/; HttpOnly; SameSite=Lax")
	}
	if h.Get("Cache-Control") == "" {
		h["Cache-Control"] = []string{"private"}
	}
	return h
}

package differential

import (
	"crypto/sha256"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"
)

// A transcript is all that there is to compare of an exchange.
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

// headerLines returns a header in the order of its names, without what is by chance.
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

// shortened returns s quoted where it would not fit a line as it is.
func shortened(s string) string {
	switch {
	case len(s) > 160:
		return fmt.Sprintf("%d bytes, %.20q … %.20q, %x", len(s), s, s[len(s)-20:], sha256.Sum256([]byte(s)))[:100]
	case strings.ContainsAny(s, "\r\n") || s == "":
		return fmt.Sprintf("%q", s)
	}
	return s
}

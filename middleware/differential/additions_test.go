package differential

import (
	"net/http"
	"slices"
	"strings"
)

// expected returns what an exchange in variant v must be like, from the one without sessions.
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

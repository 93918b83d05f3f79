package middleware

import (
	"net/http"
	"strings"
)

// navigates reports whether a request with this header was sent by a browser that goes to another
// page: by a link, a form, a reload or the address bar. A frame counts, too, since a whole
// application may live in one.
//
// Browsers say so in Sec-Fetch-Mode, which no script can set, but only over HTTPS or to localhost,
// and Safari since 16.4. Without that header it is a navigation if Accept names XHTML, as all
// browsers do when they navigate, and no fetch or XMLHttpRequest does unless its script sets the
// header. What is fetched ahead is for nobody to see yet, and what is not known to be a navigation
// is none: the harm is an error where a new session would have done.
func navigates(h http.Header) bool {
	purpose, _, _ := strings.Cut(h.Get("Sec-Purpose"), ";") // prefetch, or prefetch;prerender
	if strings.EqualFold(strings.TrimSpace(purpose), "prefetch") {
		return false
	}
	if mode := h.Get("Sec-Fetch-Mode"); mode != "" {
		return mode == "navigate"
	}
	return strings.Contains(h.Get("Accept"), "application/xhtml+xml") && h.Get("X-Requested-With") == ""
}

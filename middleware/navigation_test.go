package middleware

import (
	"net/http"
	"testing"
)

// What browsers and others send, and whether it is a navigation.
func TestNavigates(t *testing.T) {
	t.Parallel()
	const (
		chrome  = "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,image/apng,*/*;q=0.8"
		firefox = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8" // and Safari
	)
	for name, tt := range map[string]struct {
		header map[string]string
		want   bool
	}{
		"Chrome, a link":           {map[string]string{"Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document", "Sec-Fetch-User": "?1", "Accept": chrome}, true},
		"Firefox, a form":          {map[string]string{"Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document", "Accept": firefox, "Content-Type": "application/x-www-form-urlencoded"}, true},
		"a WebView":                {map[string]string{"Sec-Fetch-Mode": "navigate", "X-Requested-With": "org.example.app", "Accept": chrome}, true},
		"a worker's preload":       {map[string]string{"Sec-Fetch-Mode": "navigate", "Service-Worker-Navigation-Preload": "true", "Accept": chrome}, true},
		"Safari 15, a link":        {map[string]string{"Accept": firefox}, true},
		"Chrome over plain HTTP":   {map[string]string{"Accept": chrome}, true},
		"remade by a worker":       {map[string]string{"Sec-Fetch-Mode": "same-origin", "Accept": chrome}, false},
		"fetch":                    {map[string]string{"Sec-Fetch-Mode": "cors", "Sec-Fetch-Dest": "empty", "Accept": "*/*"}, false},
		"fetch, without CORS":      {map[string]string{"Sec-Fetch-Mode": "no-cors", "Sec-Fetch-Dest": "empty", "Accept": "*/*"}, false},
		"fetch that asks for HTML": {map[string]string{"Sec-Fetch-Mode": "cors", "Accept": "text/html, application/xhtml+xml"}, false}, // Turbo
		"fetch over plain HTTP":    {map[string]string{"Accept": "*/*"}, false},
		"jQuery over plain HTTP":   {map[string]string{"Accept": "text/html, */*; q=0.01", "X-Requested-With": "XMLHttpRequest"}, false},
		"pjax over plain HTTP":     {map[string]string{"Accept": firefox, "X-Requested-With": "XMLHttpRequest"}, false},
		"an image":                 {map[string]string{"Sec-Fetch-Mode": "no-cors", "Sec-Fetch-Dest": "image", "Accept": "image/avif,image/webp,*/*;q=0.8"}, false},
		"a websocket":              {map[string]string{"Sec-Fetch-Mode": "websocket"}, false},
		"an event stream":          {map[string]string{"Sec-Fetch-Mode": "cors", "Accept": "text/event-stream"}, false},
		"Go":                       {nil, false},
		"a link prefetched":        {map[string]string{"Sec-Fetch-Mode": "no-cors", "Sec-Purpose": "prefetch", "Accept": "*/*"}, false},
		"a page prefetched":        {map[string]string{"Sec-Fetch-Mode": "navigate", "Sec-Purpose": "prefetch", "Accept": chrome}, false},
		"a page prerendered":       {map[string]string{"Sec-Fetch-Mode": "navigate", "Sec-Purpose": "prefetch; prerender", "Accept": chrome}, false},
		"prefetched, plain HTTP":   {map[string]string{"Sec-Purpose": "prefetch", "Accept": firefox}, false},
		"nonsense":                 {map[string]string{"Sec-Fetch-Mode": "Navigate, cors", "Accept": chrome}, false},
	} {
		h := http.Header{}
		for key, value := range tt.header {
			h.Set(key, value)
		}
		if got := navigates(h); got != tt.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

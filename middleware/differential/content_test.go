package differential

import (
	"net/http"
	"strings"
	"testing/fstest"
	"time"
)

func contentCases() []testCase {
	modified := time.Date(2020, 1, 2, 3, 4, 5, 0, time.UTC)
	small, large := strings.Repeat("small file\n", 100), strings.Repeat("large file\n", 20_000)
	files := http.FS(fstest.MapFS{
		"small.txt":       {Data: []byte(small), ModTime: modified},
		"large.txt":       {Data: []byte(large), ModTime: modified},
		"page/index.html": {Data: []byte("<h1>page</h1>"), ModTime: modified},
		"page/empty.bin":  {ModTime: modified},
		"list/a<b>.txt":   {ModTime: modified},
	})
	content := func(x *exchange, w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Etag", `"v1"`)
		http.ServeContent(w, r, "small.txt", modified, strings.NewReader(small))
	}
	served := func(r request, headers ...string) request {
		r.header = append(r.header, headers...)
		return r
	}
	cases := []testCase{
		{name: "content: all", handler: content},
		{name: "content: HEAD", request: head, handler: content},
		{name: "content: range", request: served(get, "Range: bytes=5-14"), handler: content},
		{name: "content: range, HEAD", request: served(head, "Range: bytes=5-14"), handler: content},
		{name: "content: last bytes", request: served(get, "Range: bytes=-5"), handler: content},
		{name: "content: ranges", request: served(get, "Range: bytes=0-4,100-109"), handler: content},
		{name: "content: range that cannot be satisfied", request: served(get, "Range: bytes=9000-"), handler: content},
		{name: "content: malformed range", request: served(get, "Range: bites=1"), handler: content},
		{name: "content: If-Range of another version", request: served(get, "Range: bytes=0-4", `If-Range: "v0"`), handler: content},
		{name: "content: If-Range", request: served(get, "Range: bytes=0-4", `If-Range: "v1"`), handler: content},
		{name: "content: If-None-Match", request: served(get, `If-None-Match: "v1"`), handler: content},
		{name: "content: If-Match of another version", request: served(get, `If-Match: "v0"`), handler: content},
		{name: "content: If-Modified-Since", request: served(get, "If-Modified-Since: Thu, 02 Jan 2020 03:04:05 GMT"), handler: content},
		{name: "content: If-Unmodified-Since", request: served(get, "If-Unmodified-Since: Thu, 02 Jan 2010 03:04:05 GMT"), handler: content},
	}
	for _, f := range []struct {
		name, target string
		session      moment
		header       []string
	}{
		{"a small file", "/small.txt", atEnd, nil},
		{"a large file", "/large.txt", early, nil},
		{"a long range of a large file", "/large.txt", early, []string{"Range: bytes=1000-150000"}},
		{"a short range of a large file", "/large.txt", atEnd, []string{"Range: bytes=1000-1500"}},
		{"long ranges of a large file", "/large.txt", early, []string{"Range: bytes=0-99999,100001-200000"}},
		{"a page", "/page/", atEnd, nil},
		{"an empty file", "/page/empty.bin", atEnd, nil},
		{"a redirect from index.html", "/page/index.html", atEnd, nil},
		{"a redirect to the folder", "/page", atEnd, nil},
		{"a list", "/list/", atEnd, nil},
		{"no such file", "/none", atEnd, nil},
	} {
		cases = append(cases, testCase{
			name: "files: " + f.name, session: f.session, request: request{target: f.target, header: f.header},
			handler: plain(http.FileServer(files).ServeHTTP),
		})
	}
	return append(cases, testCase{name: "files: a large file, HEAD", session: atEnd,
		request: request{method: "HEAD", target: "/large.txt"}, handler: plain(http.FileServer(files).ServeHTTP)})
}

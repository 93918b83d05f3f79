package differential

const (
	refused = "What exceeds the declared length is refused, at once and for good. net/http notices " +
		"it only as it sends, or not at all, and breaks the connection then."
	hint = "net/http's hint about a superfluous call names who has called it. Where the status is " +
		"still held back, the sessions log a hint of their own, which names the handler."
	abandoned = "A panic abandons what was held back: whoever recovers it outside answers afresh."
	handed    = "The handler has a copy of the request. Its Pattern and MultipartForm are handed back, the rest is not."
)

var differencesOfLength = []difference{
	{
		cases: []string{"length: exceeded"}, on: http1,
		lines: []string{"- next: none", "+ next: as usual"},
		why:   refused + " The answer is complete, so the connection is kept.",
	},
	{
		cases: []string{"length: exceeded"}, on: http2,
		lines: []string{
			"- handler: wrote 1, <nil>", "+ handler: wrote 0, http: wrote more than the declared Content-Length",
			"- end: *truncated", "+ end: complete",
		},
		why: refused,
	},
	{
		cases: []string{"copy: more than the declared length"}, on: http1,
		lines: []string{
			"- handler: wrote 1500, <nil>", "+ handler: wrote 512, http: wrote more than the declared Content-Length",
			"- body: 1000 bytes*", "+ body: 512 bytes*", "- end: complete", "+ end: cut off, 488 bytes are missing",
			"- next body: 500 bytes*", "- next end: no HTTP", "+ next: none",
		},
		why: refused + " net/http sends the excess as if it were the next answer.",
	},
	{
		cases: []string{"copy: more than the declared length"}, on: http2,
		lines: []string{
			"- handler: wrote 1500, <nil>", "+ handler: wrote 512, http: wrote more than the declared Content-Length",
			"- body: 1000 bytes*", "+ body: 512 bytes*", "- end: *truncated", "+ end: unexpected EOF",
		},
		why: refused,
	},
	{
		cases: []string{"copy: 1000 bytes", "copy: 1000 bytes, then an error"}, on: http1[:1],
		lines: []string{
			"+ header: Connection: keep-alive", "+ header: Content-Length: 1000",
			"- body: until the end of the connection", "+ body: of declared length", "- next: none", "+ next: as usual",
		},
		why: "net/http begins an answer as it is copied. Here it is known whole, and so is its length.",
	},
	{
		cases: []string{"copy: 1000 bytes", "copy: 1000 bytes, then an error"}, on: http1[1:],
		lines: []string{
			"+ header: Content-Length: 1000", "- header: Transfer-Encoding: chunked", "- body: chunked", "+ body: of declared length",
		},
		why: "As over HTTP/1.0.",
	},
	{
		cases: []string{"copy: 1000 bytes, then an error"}, on: http1[:1],
		lines: []string{"- handler: wrote *, readfrom tcp ADDR->ADDR: the source failed", "+ handler: wrote *, the source failed"},
		why:   "The error is the same, but does not come from the connection, which did not do the copying.",
	},
}

var differencesOfStatus = []difference{
	{
		cases: []string{"status: after a flush", "status: invalid *, after a flush"}, on: http1,
		lines: []string{
			"- log: http: superfluous response.WriteHeader call from the handler",
			"+ log: http: superfluous response.WriteHeader call from the middleware",
		},
		why: hint,
	},
	{
		cases: []string{"informational: 103 after a flush"}, on: http1[1:],
		lines: []string{
			"- log: http: superfluous response.WriteHeader call from the handler",
			"+ log: http: superfluous response.WriteHeader call from the middleware",
		},
		why: hint,
	},
	{
		cases: superfluous, on: http1,
		lines: []string{"- log: http: superfluous response.WriteHeader call from the handler", "+ log: latchkey: superfluous WriteHeader, which is ignored"},
		why:   hint,
	},
	{
		cases: superfluous, on: http2,
		lines: []string{"+ log: latchkey: superfluous WriteHeader, which is ignored"},
		why:   hint + " Over HTTP/2 net/http gives none.",
	},
	{
		cases: []string{"hijack: writes afterwards"},
		on:    http1,
		lines: []string{
			"- log: http: response.Write on hijacked connection from the handler", "+ log: http: response.Write on hijacked connection from the middleware",
			"- log: http: response.WriteHeader on hijacked connection from the handler", "+ log: http: response.WriteHeader on hijacked connection from the middleware",
			"- log: http: response.WriteHeader on hijacked connection from the handler", "+ log: http: response.WriteHeader on hijacked connection from the middleware",
		},
		why: hint,
	},
}

// superfluous are the cases with a status that comes after another, both before the first byte.
var superfluous = []string{
	"status: written twice", "status: after an empty write", "status: invalid *, after a status",
	"status: invalid *, after the body",
	"informational: 103 after a status",
}

var differencesOfHeader = []difference{
	{
		cases: []string{"around: header of an empty answer"},
		lines: []string{"+ header: X-Afterwards: 1"},
		why:   "An empty write is not passed on, so what is outside can still set a header of an answer that is empty.",
	},
	{
		cases: []string{
			"gzip in Write* outside: a page*", "gzip in Write* outside: a copy", "gzip in Write* outside: own Vary",
			"gzip in WriteHeader outside: 404"}, variants: using,
		lines: []string{"- header: Vary: *Accept-Encoding, Cookie", "+ header: Vary: *Cookie", "+ header: Vary: Accept-Encoding"},
		why:   "A compressor outside adds a line of its own later: nobody can merge that.",
	},
	{
		cases: []string{"gzip in Write* outside: a long page", "gzip in Write* outside: a flush"}, variants: opening,
		lines: []string{"- header: Vary: *Accept-Encoding, Cookie", "+ header: Vary: *Cookie", "+ header: Vary: Accept-Encoding"},
		why:   "Likewise.",
	},
	{
		cases: []string{"trailer: Vary and Cache-Control"}, variants: using, on: not10,
		lines: []string{"+ trailer: Vary: Cookie"},
		why:   "A handler that declares Vary as a trailer has it there, too.",
	},
	{
		cases: []string{"writer: what it can do"}, on: http1,
		lines: []string{
			"- handler: the writer has StringWriter: true", "+ handler: the writer has StringWriter: false",
			"- handler: the writer has EnableFullDuplex: true", "+ handler: the writer has EnableFullDuplex: false",
		},
		why: "http.ResponseController finds the methods that have nothing to do with the session; io.WriteString needs none.",
	},
	{
		cases: []string{"writer: what it can do"}, on: http2,
		lines: []string{
			"- handler: the writer has Pusher: true", "+ handler: the writer has Pusher: false",
			"- handler: the writer has ReaderFrom: false", "+ handler: the writer has ReaderFrom: true",
			"- handler: the writer has StringWriter: true", "+ handler: the writer has StringWriter: false",
			"- handler: the writer has EnableFullDuplex: true", "+ handler: the writer has EnableFullDuplex: false",
		},
		why: "One writer serves all protocols. Browsers have given up push.",
	},
	{
		cases: []string{"timeout outside: a flush"},
		lines: []string{"- handler: is a Flusher: false", "+ handler: is a Flusher: true"},
		why:   "Likewise: Flush by the controller returns http.ErrNotSupported, as it does without sessions.",
	},
}

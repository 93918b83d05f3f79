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
		cases: []string{"length: exceeded", "length: long, exceeded", "length: zero, with a body"}, on: http1,
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
		cases: []string{"length: zero, with a body"}, on: http2,
		lines: []string{
			"- handler: wrote 4, <nil>", "+ handler: wrote 0, http: wrote more than the declared Content-Length",
			"- header: Content-Type: *", "- end: *truncated", "+ end: complete",
		},
		why: refused,
	},
	{
		cases: []string{"length: long, exceeded"}, on: http2,
		lines: []string{
			"- handler: wrote 0, http2: handler wrote more than declared Content-Length",
			"+ handler: wrote 0, http: wrote more than the declared Content-Length",
		},
		why: refused + " The error is http.ErrContentLength over both.",
	},
	{
		cases: []string{"length: exceeded at once"}, on: http2,
		lines: []string{
			"- handler: wrote 10, <nil>", "+ handler: wrote 0, http: wrote more than the declared Content-Length",
			"- header: Content-Type: *", "- body: 12345", "- end: *truncated", "+ end: unexpected EOF",
		},
		why: refused,
	},
	{
		cases: []string{"length: exceeded, then a short write", "length: exceeded by a write that straddles it"}, on: http2,
		lines: []string{
			"- handler: wrote *, <nil>", "- handler: wrote *, <nil>",
			"+ handler: wrote 0, http: wrote more than the declared Content-Length",
			"+ handler: wrote 0, http: wrote more than the declared Content-Length",
			"- body: 1234567890", "+ body: 12345*", "- end: *truncated", "+ end: unexpected EOF",
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
		cases: []string{"copy: a file longer than declared"}, on: http1,
		lines: []string{
			"- handler: wrote 300000, <nil>", "- handler: the file is at 300000",
			"+ handler: wrote 199999, http: wrote more than the declared Content-Length", "+ handler: the file is at *",
			"- body: 200000 bytes*", "+ body: 199999 bytes*", "- end: complete", "+ end: cut off, 1 bytes are missing",
			"- next body: 100000 bytes*", "- next end: no HTTP", "+ next: none",
		},
		why: refused + " net/http sends the excess as if it were the next answer.",
	},
	{
		cases: []string{"copy: a file longer than declared"}, on: http2,
		lines: []string{
			"- handler: wrote 196608, *", "- handler: the file is at *", "+ handler: wrote 199999, *", "+ handler: the file is at *",
			"- body: 196608 bytes*", "+ body: 199999 bytes*",
		},
		why: "The first piece has another size, since the buffer is another one.",
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
		cases: []string{"copy: 1000 bytes, HEAD"}, on: http1,
		lines: []string{"+ header: Content-Length: 1000"},
		why:   "As with GET.",
	},
	{
		cases: []string{"copy: 1000 bytes, then an error", "copy: 5000 bytes, then an error"}, on: http1[:1],
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
		cases: []string{"informational: 103 after a flush", "informational: 103 after a long body"}, on: http1[1:],
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
	"status: written twice", "status: after the body", "status: after an empty write", "status: invalid *, after a status",
	"status: invalid *, after the body", "recovered inside: after a status",
	"informational: 103 after a status", "informational: 103 after the body",
}

var differencesOfHeader = []difference{
	{
		cases: []string{"around: counts the calls for nothing"},
		lines: []string{`- handler: Write("")`},
		why:   "An empty write is not passed on: the answer begins at its first byte, or at the end.",
	},
	{
		cases: []string{"around: header of an empty answer"},
		lines: []string{"+ header: X-Afterwards: 1"},
		why:   "An empty write is not passed on, so what is outside can still set a header of an answer that is empty.",
	},
	{
		cases: []string{
			"gzip in Write* outside: a page*", "gzip in Write* outside: a copy", "gzip in Write* outside: own Vary",
			"gzip in WriteHeader outside: 404",
		}, variants: using,
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

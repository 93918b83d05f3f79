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
		cases: []string{"copy: more than the declared length"}, on: http1, before: "go1.27",
		lines: []string{
			"- handler: wrote 1500, <nil>", "+ handler: wrote 512, http: wrote more than the declared Content-Length",
			"- body: 1000 bytes*", "+ body: 512 bytes*", "- end: complete", "+ end: cut off, 488 bytes are missing",
			"- next body: 500 bytes*", "- next end: no HTTP", "+ next: none",
		},
		why: refused + " net/http sends the excess as if it were the next answer.",
	},
	{
		cases: []string{"copy: more than the declared length"}, on: http1, since: "go1.27",
		lines: []string{
			"- handler: wrote 1000, http: wrote more than the declared Content-Length",
			"+ handler: wrote 512, http: wrote more than the declared Content-Length",
			"- body: 1000 bytes*", "+ body: 512 bytes*", "- end: complete", "+ end: cut off, 488 bytes are missing",
			"- next: as usual", "+ next: none",
		},
		why: refused + " net/http refuses only the excess.",
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
		},
		why: "http.ResponseController finds the methods that have nothing to do with the session; io.WriteString needs none.",
	},
	{
		cases: []string{"writer: what it can do"}, on: http2,
		lines: []string{
			"- handler: the writer has Pusher: true", "+ handler: the writer has Pusher: false",
			"- handler: the writer has ReaderFrom: false", "+ handler: the writer has ReaderFrom: true",
			"- handler: the writer has StringWriter: true", "+ handler: the writer has StringWriter: false",
		},
		why: "One writer serves all protocols. Browsers have given up push.",
	},
	{
		cases: []string{"timeout outside: a flush"},
		lines: []string{"- handler: is a Flusher: false", "+ handler: is a Flusher: true"},
		why:   "Likewise: Flush by the controller returns http.ErrNotSupported, as it does without sessions.",
	},
}

var differencesOfBody = []difference{
	{
		cases: []string{"body: ends too early"}, variants: locking, on: http1,
		lines: []string{
			"- handler: read body, unexpected EOF", "- handler: wrote 4, <nil>",
			"- status: HTTP/1.* 200 OK", "+ status: HTTP/1.* 400 Bad Request",
			"+ header: Cache-Control: no-store", "- header: Content-Length: 4", "+ header: Content-Length: *",
			"+ header: X-Content-Type-Options: nosniff", "- body: eeee", "+ body: \"The request did not arrive whole*",
		},
		why: "The body is read before the session is locked. The client that left in the middle of it gets no turn, and reads why if it is still there.",
	},
	{
		cases: []string{"body: ends too early"}, variants: []string{"Exclusive, *writes", "Optimistic, *s"}, on: http1,
		lines: []string{"- header: Cache-Control: private", "- header: Vary: Cookie"},
		why:   "Likewise: its handler has not used the session.",
	},
	{
		cases: []string{"half duplex: the body after a flush"}, variants: locking, on: http1[1:],
		lines: []string{
			"- handler: read \"\", http: invalid Read on closed Body", "+ handler: read body, *",
			"- handler: wrote 0, <nil>", "+ handler: wrote 4, <nil>", "+ body: eeee",
		},
		why: "A body that was read ahead is still there when net/http has given up the connection's.",
	},
	{
		cases:    []string{"expect: permitted by hand", "expect: refused with 413", "expect: the body is not read"},
		variants: locking, on: http2,
		lines: []string{"+ informational: Continue"},
		why:   "Over HTTP/2 net/http hides that the client waits for permission, so its body is read ahead.",
	},
	{
		cases: []string{"expect: the body after a write"}, on: http1[1:],
		lines: []string{
			"- handler: read \"\", failed true", "+ handler: read \"body\", failed false",
			"+ informational: HTTP/1.1 100 Continue", "- header: Connection: close", "- next: none", "+ next: as usual",
		},
		why: "The write is held back, so the client is still asked for its body, and the two do not wait for each other.",
	},
	{
		cases: []string{"form: seen outside"},
		lines: []string{"- handler: form map[a:[1 0] b:[2]]", "+ handler: form map[]"},
		why:   handed,
	},
	{
		cases: []string{"routing: a mux inside, seen outside"},
		lines: []string{"- handler: outside: *item \"7\"", "+ handler: outside: *item \"\""},
		why:   handed,
	},
	{
		cases: []string{"limit: inside"}, on: http1,
		lines: []string{"- next: none", "+ next: as usual"},
		why:   "http.MaxBytesReader asks the writer of net/http itself to close the connection. http.MaxBytesHandler outside does so.",
	},
	{
		cases: []string{"limit: inside"}, on: http1[1:],
		lines: []string{"- header: Connection: close"},
		why:   "Likewise.",
	},
	{
		cases: []string{"limit: inside"}, on: http1[:1], before: "go1.27", // HTTP/1.0 does not need it
		lines: []string{"- header: Connection: close"},
		why:   "Likewise.",
	},
	{
		cases: []string{"limit: inside"}, on: http1[:1],
		lines: []string{"+ header: Connection: keep-alive"},
		why:   "Likewise.",
	},
}

var differencesOfEnd = []difference{
	{
		cases: []string{"panic: after 5000 bytes"}, on: http1[:1],
		lines: []string{
			"- status: *", "- header: Content-Type: *", "- header: Date: now", "- body: until the end of the connection",
			"- body: 4096 bytes*", "- end: complete", "+ end: the connection was closed",
		},
		why: abandoned + " The client gets nothing, rather than a part.",
	},
	{
		cases: []string{"panic: after 5000 bytes"}, on: http1[1:],
		lines: []string{
			"- status: *", "- header: Content-Type: *", "- header: Date: now", "- header: Transfer-Encoding: chunked",
			"- body: chunked", "- body: 4096 bytes*", "- end: cut off", "+ end: the connection was closed",
		},
		why: abandoned + " The client gets nothing, rather than a part.",
	},
	{
		cases: []string{"panic: after 5000 bytes"}, on: http2,
		lines: []string{"- status: *", "- header: Content-Type: *", "- header: Date: now", "- body: 4096 bytes*"},
		why:   abandoned + " The client gets nothing, rather than a part.",
	},
	{
		cases: []string{"recovered outside: after a body", "recovered outside: answered through the inner writer after a body"},
		lines: []string{
			"- status: *201 Created", "+ status: *500 Internal Server Error", "- header: Content-Length: 10", "+ header: Content-Length: 6",
			"- header: X-Half: done", "+ header: X-Content-Type-Options: nosniff", "- body: \"halfsorry\\n\"", "+ body: \"sorry\\n\"",
		},
		why: abandoned,
	},
	{
		cases: []string{"recovered outside: after a body", "recovered outside: answered through the inner writer after a body"}, on: http1,
		lines: []string{"- log: http: superfluous response.WriteHeader call from the handler"},
		why:   abandoned,
	},
	{
		cases: []string{"recovered outside: after a header", "recovered outside: answered through the inner writer"},
		lines: []string{"- header: X-Half: done"},
		why:   abandoned,
	},
	{
		cases: []string{"timeout outside: reached"}, variants: []string{"Exclusive, creates", "*writes"},
		lines: []string{"+ log: latchkey: session failed: *deadline*"},
		why:   "Nothing of a request whose time is over is saved, and the log says so.",
	},
	{
		cases: []string{"hijack: after a long body of declared length"}, on: http1,
		lines: []string{
			"- body: * bytes*", "- end: cut off*", "- next: none", "+ body: *000 bytes*", "+ end: complete",
			"+ next status: HTTP/1.1 299 Own", "+ next header: Content-Length: 3", "+ next header: X-Own: 1",
			"+ next body: of declared length", "+ next body: own", "+ next end: complete",
		},
		why: "A hijack loses what net/http has not sent yet. Here the answer was sent whole before.",
	},
}

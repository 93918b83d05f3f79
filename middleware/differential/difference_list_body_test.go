package differential

var differencesOfBody = []difference{
	{
		cases: []string{"body: ends too early"}, variants: locking, on: http1,
		lines: []string{
			"- handler: read body, unexpected EOF", "- handler: wrote 4, <nil>",
			"- status: HTTP/1.* 200 OK", "+ status: HTTP/1.* 503 Service Unavailable",
			"+ header: Cache-Control: no-store", "- header: Content-Length: 4", "+ header: Content-Length: *",
			"+ header: Retry-After: 1", "+ header: X-Content-Type-Options: nosniff", "- body: eeee", "+ body: \"The session is not available*",
		},
		why: "The body is read before the session is locked. The client that left in the middle of it gets no turn.",
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
		lines: []string{"- header: Connection: close", "- next: none", "+ next: as usual"},
		why:   "http.MaxBytesReader asks the writer of net/http itself to close the connection. http.MaxBytesHandler outside does so.",
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

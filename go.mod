module github.com/a2139e8d/latchkey

go 1.26.0

require (
	github.com/alicebob/miniredis/v2 v2.40.0
	github.com/anishathalye/porcupine v1.3.1
	github.com/coder/websocket v1.8.15
	github.com/gomodule/redigo v1.9.3
	github.com/gorilla/securecookie v1.1.2
	go.uber.org/goleak v1.3.0
)

require github.com/yuin/gopher-lua v1.1.1

// A module of its own, so that what the simulation needs stays out of Latchkey's.
module github.com/a2139e8d/latchkey/cmd/simulate

go 1.26.0

replace github.com/a2139e8d/latchkey => ../..

require (
	github.com/a2139e8d/latchkey v0.0.0-00010101000000-000000000000
	github.com/gomodule/redigo v1.9.3
	github.com/yuin/gopher-lua v1.1.1
)

require (
	github.com/alicebob/miniredis/v2 v2.40.0 // indirect
	github.com/gorilla/securecookie v1.1.2 // indirect
)

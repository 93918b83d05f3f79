// Latchkey over go-redis: a module of its own, so that nobody gets a client that he does not use.
module github.com/a2139e8d/latchkey/store/goredisstore

go 1.26.0

require (
	github.com/a2139e8d/latchkey v1.0.0-rc.1
	github.com/redis/go-redis/v9 v9.23.0
)

require (
	github.com/alicebob/miniredis/v2 v2.40.0
	github.com/cespare/xxhash/v2 v2.3.0 // indirect
	github.com/gomodule/redigo v1.9.3 // indirect
	github.com/gorilla/securecookie v1.1.2 // indirect
	github.com/yuin/gopher-lua v1.1.1 // indirect
	go.uber.org/atomic v1.12.0 // indirect
	golang.org/x/sys v0.48.0 // indirect
)

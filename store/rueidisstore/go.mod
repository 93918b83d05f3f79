module github.com/a2139e8d/latchkey/store/rueidisstore

go 1.26.0

require (
	github.com/a2139e8d/latchkey v1.0.0-rc.1
	github.com/gomodule/redigo v1.9.3
	github.com/redis/rueidis v1.0.79
)

require (
	github.com/alicebob/miniredis/v2 v2.40.0
	github.com/gorilla/securecookie v1.1.2 // indirect
	github.com/yuin/gopher-lua v1.1.1 // indirect
	golang.org/x/sys v0.47.0 // indirect
)

module github.com/a2139e8d/latchkey/cmd/latchkey

go 1.26.0

require (
	github.com/a2139e8d/latchkey v1.0.0-rc.1
	github.com/a2139e8d/latchkey/store/rueidisstore v1.0.0-rc.1
	github.com/creack/pty v1.1.24
	github.com/gomodule/redigo v1.9.3
	github.com/mattn/go-runewidth v0.0.31
	github.com/redis/rueidis v1.0.79
	golang.org/x/term v0.45.0
)

require (
	github.com/clipperhouse/uax29/v2 v2.2.0 // indirect
	github.com/yuin/gopher-lua v1.1.1 // indirect
	golang.org/x/sys v0.47.0 // indirect
)

// A module of its own, so that the browser's driver stays out of Latchkey's.
module github.com/a2139e8d/latchkey/internal/browser

go 1.26.0

require (
	github.com/a2139e8d/latchkey v1.0.0-rc.1
	github.com/chromedp/cdproto v0.159.0
	github.com/chromedp/chromedp v0.22.1
	github.com/coder/websocket v1.8.15
)

require (
	github.com/go-json-experiment/json v0.0.0-20260213210345-44df1a37e875 // indirect
	github.com/gomodule/redigo v1.9.3 // indirect
	github.com/gorilla/securecookie v1.1.2 // indirect
	github.com/yuin/gopher-lua v1.1.1 // indirect
)

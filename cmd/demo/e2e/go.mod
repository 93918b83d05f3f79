// A module of its own, so that the browser's driver stays out of Latchkey's.
module github.com/a2139e8d/latchkey/cmd/demo/e2e

go 1.26

require (
	github.com/chromedp/cdproto v0.159.0
	github.com/chromedp/chromedp v0.22.1
)

require github.com/go-json-experiment/json v0.0.0-20260213210345-44df1a37e875 // indirect

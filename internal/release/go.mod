// A module of its own, so that the tools of a release stay out of Latchkey's.
module github.com/a2139e8d/latchkey/internal/release

go 1.26.0

require (
	github.com/a2139e8d/latchkey v1.0.0-rc.1
	golang.org/x/mod v0.43.0
)

package main

import "github.com/a2139e8d/latchkey/internal/overlay"

// The Redis inside the process.
var embeddedDefects = []defect{
	{"P12", "the clock of the embedded Redis stands still",
		edits(overlay.In("internal/embeddedredis", "Redis.tick").Drop("r.FastForward(p)")),
		seenBy(tests("store/embedded", "TestSessionsExpire"), tests("internal/embeddedredis", "TestTheClockRuns"))},
}

package main

import "github.com/a2139e8d/latchkey/internal/overlay"

// An ended session stays ended, and no visitor is locked out.
var endDefects = []defect{
	{"P4", "a tombstone lasts a millisecond",
		edits(overlay.In("internal/records", "tombstoneTime").Set("time.Millisecond")),
		seenBy(simulation("calm"))},
	{"P4", "the end of a session leaves no tombstone",
		edits(
			overlay.Rule("a commit at once stores the record, with a timeout").After(
				`if string.find(ARGV[5], '"gone":') then redis.call('DEL', KEYS[1]) end`),
			overlay.Rule("a logout leaves a tombstone").Call("set(k, r, 'PX', t)", "redis.call('DEL', k)")),
		seenBy(model("dtw", "which has not timed out"))},
	{"P4", "a login leaves the old id alive",
		edits(overlay.In("internal/records", "Hold.Renew").Replace("h.bury(c, b, t)", "func() error { _, _ = b, t; return h.Touch(c) }()")),
		seenBy(simulation("calm"), faults("TestRedisPausedShortly"))},
	{"P4", "a login in an ended session is refused",
		edits(overlay.In("middleware", "decide").Begin(`if ($1 == goneID || $1 == gonePage) && $2.Renewed && !$2.Destroyed {
	if $2.Changed {
		return refuse
	}
	return leave
}`)),
		seenBy(tests("middleware", "TestADoubleClickOnLogin"), simulation("calm"))},
	{"P4", "a script in an ended session gets a cookie",
		edits(overlay.In("middleware", "opening.choose").True("navigates(h)")),
		seenBy(tests("middleware", "TestABackgroundAnswerDoesNotUndoALogin"), simulation("calm"))},
	{"P4", "a logout leaves the cookie in the browser",
		edits(overlay.In("middleware", "commit.changeID").Replace("s.cookies.deletion()", "nil")),
		seenBy(tests("middleware", ""))},
}

// Sessions expire, but not while they are used, and their size is limited.
var timeDefects = []defect{
	{"P12", "reading a session does not extend its timeout",
		edits(
			overlay.Rule("reading a session extends its timeout").Drop(),
			overlay.In("internal/records", "Engine.loadPlainly").Replace(`[]any{"PTTL", k, "PEXPIRE", k, t, "GT", "GET", k}`, `[]any{"PTTL", k, "PEXPIRE", k, 1, "GT", "GET", k}`)),
		seenBy(simulation("short"))},
	{"P12", "reading a session shortens the time that its holder gave it",
		edits(overlay.In("internal/records", "Engine.loadPlainly").Replace(`[]any{"PTTL", k, "PEXPIRE", k, t, "GT", "GET", k}`, `[]any{"PTTL", k, "PEXPIRE", k, t, "XX", "GET", k}`)),
		seenBy(simulation("short"))},
	{"P12", "a session expires while it is held",
		edits(overlay.Rule("a record outlasts its lock").Drop(), overlay.Rule("a record outlasts its renewed lock").Drop()),
		seenBy(tests("internal/records", "TestAHeldSessionDoesNotRunOut"), simulation("short"))},
	{"P12", "a saved record never expires",
		edits(
			overlay.Rule("a commit at once stores the record, with a timeout").Call("f('SET', k, r, 'PX', t)", "f('SET', k, r)"),
			overlay.Rule("a commit stores the record, with a timeout").Call("f('SET', k, r, 'PX', t)", "f('SET', k, r)")),
		seenBy(simulation("short"))},
	{"P12", "the absolute timeout is not enforced",
		edits(overlay.In("internal/records", "Terms.outlived").Return("0")),
		seenBy(faults("TestClockPastLifetime"))},
	{"P13", "an error or a log line contains all of a long key",
		edits(overlay.In("internal/excerpt", "Of").Begin("if len($1) > 0 {\n\treturn $1\n}")),
		seenBy(tests("internal/records", "TestErrorsAreShort"), tests("session", "TestErrorsCutALongKey"), tests("middleware", "TestWhatIsSetAfterDestroyIsReported"))},
	{"P13", "any size is stored",
		edits(overlay.Rule("a record that is too large is refused").False()),
		seenBy(tests("middleware", "TestARecordThatCannotBeUsed"))},
	{"P12", "a record expires while requests wait for it",
		edits(overlay.Rule("while others wait the record does not expire").Drop()),
		seenBy(tests("internal/records", "TestASessionOutlastsTheNextTurn"))},
	{"P12", "a session keeps its guest timeout after a login",
		edits(overlay.In("internal/records", "Times.renewed").Begin("if $recv != nil {\n\treturn $recv\n}")),
		seenBy(tests("internal/records", ""))},
	{"P12", "a remembered session expires when it is idle",
		edits(overlay.In("internal/records", "Terms.remains").False("r.Own != nil && !r.Own.Until.IsZero()")),
		seenBy(tests("internal/records", ""), tests("middleware", ""))},
	{"P13", "twice MaxBytes may be stored",
		edits(overlay.In("internal/records", "Terms.fits").Replace("s > t.MaxBytes", "s > 2*t.MaxBytes")),
		seenBy(tests("internal/records", ""))},
	{"P12", "each save begins the absolute timeout anew",
		edits(overlay.In("internal/records", "Hold.SaveContent").After("r.Data, r.Content, r.revision = a, b, c", "r.Created = time.Now()")),
		seenBy(tests("internal/records", "TestASaveKeepsWhenTheSessionBegan"))},
}

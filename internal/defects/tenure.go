package main

import "github.com/a2139e8d/latchkey/internal/overlay"

// The requests of one process share a session's lock, and their writes go to Redis together.
var tenureDefects = []defect{
	{"P2", "a response before the commit is stored",
		edits(overlay.In("internal/records", "tenure.end").Replace("t.settle(c, v, e)",
			"go func() { t.mu.Lock(); defer t.mu.Unlock(); t.settle(c, v, e) }()\nreturn nil")),
		seenBy(simulation("crashes"), faults("TestAppKilledWithCommitAnswered"))},
	{"P2", "a version that is not stored counts as stored",
		edits(overlay.In("internal/records", "tenure.commit").Begin(
			"defer func(sent int) { if $recv.over != nil { $recv.stored = sent } }($recv.newest)")),
		seenBy(simulation("cut"))},
	{"P2", "a change made during a commit counts as stored with it",
		edits(overlay.In("internal/records", "tenure.commit").Begin(
			"defer func() { if $recv.over == nil || $recv.over == errFreed { $recv.stored = $recv.newest } }()")),
		seenBy(simulation("crowd"))},
	{"P1", "a group is written as its first version",
		edits(
			overlay.In("internal/records", "tenure.end").Before("t.newest++", "first, unsent := t.record, t.written > t.stored"),
			overlay.In("internal/records", "tenure.end").Before("e := t.vacate(n)", "if unsent && $3.changed {\n\tt.record = first\n}")),
		seenBy(simulation("crowd"))},
	{"P1", "a hold builds on a version that a commit has failed to store",
		edits(
			overlay.In("internal/records", "tenure.admit").False("t.over != nil"),
			overlay.In("internal/records", "tenure.fail").Begin("$recv.stored, $recv.written = $recv.newest, $recv.newest")),
		seenBy(simulation("cut"))},
	{"P1", "a read that may be stale is no error",
		edits(overlay.In("internal/records", "Hold.Touch").True("h.first && x")),
		seenBy(simulation("cut"))},
	{"P4", "a tenure goes on after a logout",
		edits(overlay.In("internal/records", "tenure.mayPass").Replace("!t.ended", "true")),
		seenBy(simulation("calm"))},
	{"P2", "a commit that outlasts its lease and may be stored is reported as refused",
		edits(overlay.In("internal/records", "tenure.fail").False("t.over != nil && scripting.MaybeDone(e)")),
		seenBy(tests("internal/records", "TestACommitMayBeStoredThatOutlastsItsLease"))},
	{"P8", "each waiter discovers again that Redis is silent",
		edits(overlay.In("internal/records", "tenure.fail").Drop("l.Dismiss(k, e)")),
		seenBy(tests("middleware", "TestRedisFallsSilentAndAllAreAnsweredInTime"))},
	{"P5", "a commit that has waited for another gets the whole time of a round trip",
		edits(overlay.In("internal/records", "tenure.isShort").Return("false")),
		seenBy(tests("internal/records", "TestARequestIsOverInTime"))},
	{"P5", "a login's second step gets the whole time of a round trip again",
		edits(overlay.In("internal/records", "Hold.Renew").Replace("$recv.bury($1, b, t)", "$recv.bury($1, time.Now(), t)")),
		seenBy(tests("internal/records", "TestARequestIsOverInTime"))},
	{"P7", "a commit whose goroutine has ended counts as never sent",
		edits(overlay.In("internal/records", "tenure.commit").Replace("scripting.ErrExited", "error(nil)")),
		seenBy(tests("internal/records", "TestAClientPanicsAtTheEnd"))},
	{"P7", "a hold is not released if its client ends the goroutine",
		edits(overlay.In("internal/records", "Hold.letGo").Return("")),
		seenBy(tests("internal/records", "TestAContentPanics"), tests("internal/records", "TestAClientPanicsAtTheEnd"))},
	{"P10", "one round trip more before each commit",
		edits(overlay.In("internal/records", "tenure.exchange").Begin("_ = $recv.engine.Ping($1)")),
		seenBy(tests("internal/records", "TestRequests"))},
	{"P10", "a request that changes nothing writes the record",
		edits(overlay.In("session", "Session.close").Replace("c.Changed || c.Remembered", "true")),
		seenBy(tests("session", ""), tests("middleware", ""))},
}

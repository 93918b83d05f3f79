package main

import "github.com/a2139e8d/latchkey/internal/overlay"

// The requests of one process share a session's lock, and their writes go to Redis together.
var tenureDefects = []defect{
	{"P2", "an answer before the commit is stored",
		edits(overlay.In("internal/records", "tenure.end").Replace("t.flush(c, v)",
			"go func() { t.mu.Lock(); defer t.mu.Unlock(); t.flush(c, v) }()\nreturn nil")),
		seenBy(simulation("crashes"), faults("TestAppKilledWithCommitAnswered"))},
	{"P2", "a version counts as stored that is not",
		edits(overlay.In("internal/records", "tenure.send").Begin(
			"defer func(sent int) { if $recv.err != nil { $recv.stored = sent } }($recv.newest)")),
		seenBy(simulation("cut"))},
	{"P2", "what has come during a commit counts as stored with it",
		edits(overlay.In("internal/records", "tenure.send").Begin(
			"defer func() { if $recv.err == nil { $recv.stored = $recv.newest } }()")),
		seenBy(simulation("crowd"))},
	{"P1", "a group is written as its first version",
		edits(
			overlay.In("internal/records", "tenure.end").Before("t.newest++", "first, unsent := t.write, t.written > t.stored"),
			overlay.In("internal/records", "tenure.end").Replace("t.passOn(a, b, c, d)", `func() bool {
	if unsent && $3.changed {
		t.write = first
	}
	return t.passOn(a, b, c, d)
}()`)),
		seenBy(simulation("crowd"))},
	{"P1", "a hold joins what a commit has failed to store",
		edits(
			overlay.In("internal/records", "tenure.admit").False("t.err != nil"),
			overlay.In("internal/records", "tenure.fail").Begin("$recv.stored, $recv.written = $recv.newest, $recv.newest")),
		seenBy(simulation("cut"))},
	{"P1", "a read that may be stale is no error",
		edits(overlay.In("internal/records", "Hold.Touch").True("!h.joined && x")),
		seenBy(simulation("cut"))},
	{"P4", "a tenure goes on after a logout",
		edits(overlay.In("internal/records", "tenure.usable").False("t.ended")),
		seenBy(simulation("calm"))},
	{"P8", "each that waits finds out anew that Redis is silent",
		edits(overlay.In("internal/records", "tenure.fail").Drop("t.lease.Dismiss(e)")),
		seenBy(tests("middleware", "TestRedisFallsSilentAndAllAreAnsweredInTime"))},
	{"P5", "a commit that has waited for another has all the time of an exchange",
		edits(overlay.In("internal/records", "tenure.isShort").Return("false")),
		seenBy(tests("internal/records", "TestARequestIsOverInTime"))},
	{"P5", "a login's second step has all the time of an exchange again",
		edits(overlay.In("internal/records", "Hold.Renew").Replace("$recv.end($1, b)", "$recv.end($1, time.Now())")),
		seenBy(tests("internal/records", "TestARequestIsOverInTime"))},
	{"P7", "a commit whose goroutine has ended counts as never sent",
		edits(overlay.In("internal/records", "tenure.send").Replace("scripting.ErrExited", "error(nil)")),
		seenBy(tests("internal/records", "TestAClientPanicsAtTheEnd"))},
	{"P7", "a hold whose client ends the goroutine is not given back",
		edits(overlay.In("internal/records", "Hold.letGo").Return("")),
		seenBy(tests("internal/records", "TestAContentPanics"), tests("internal/records", "TestAClientPanicsAtTheEnd"))},
	{"P10", "one round trip more before each commit",
		edits(overlay.In("internal/records", "tenure.exchange").Begin("_ = $recv.store.Ping($1)")),
		seenBy(tests("internal/records", "TestRequests"))},
	{"P10", "a request that changes nothing writes the record",
		edits(overlay.In("session", "Session.Seal").Replace("c.Changed || c.Remembered", "true")),
		seenBy(tests("session", ""), tests("middleware", ""))},
}

package main

import "github.com/a2139e8d/latchkey/internal/overlay"

// anysRecord makes a record valid at any key.
var anysRecord = overlay.In("internal/records", "parseHead").False("lease.BondIn(r.revision) != b")

// The connections to Redis, on which replies have no names.
var transportDefects = []defect{
	{"P11", "replies have no number",
		edits(
			overlay.In("internal/scripting", "unframe").True("r>>2 == c"),
			overlay.In("internal/scripting", "unframe").True("r[n] == c"),
			overlay.In("internal/scripting", "Runner.RoundTripNumbered").False("!bytes.Equal(n, strconv.AppendInt(d, c, 10))")),
		seenBy(simulation("doubled"), faults("TestWireRepeatsOnOneConnection"))},
	{"P11", "a record is accepted at any key",
		edits(anysRecord),
		seenBy(tests("internal/records", "TestAKeyThatWasCopied"), tests("internal/records", "TestRepliesThatChangePlaces"))},
	{"P11", "a plain read that gets another session's record does not ask again",
		edits(overlay.In("internal/records", "Engine.loadPlainly").Replace("parseHead(t, b)", "parseHead(t, lease.BondIn(revisionOf(t)))")),
		seenBy(tests("internal/records", "TestRepliesThatChangePlaces"))},
	// If the record were checked, that would hide the defect.
	{"P11", "the number of a read comes ahead of its last reply",
		edits(
			anysRecord,
			overlay.In("internal/scripting", "Runner.RoundTripNumbered").After("r, e := q.RoundTripPlain(c, s, a...)", `if n := len(r); n > 1 {
	r[n-2], r[n-1] = r[n-1], r[n-2]
}`),
			overlay.In("internal/scripting", "Runner.RoundTripNumbered").Replace(`append(c, transport.Command{"PING", n})`,
				`append(append(c[:len(c)-1:len(c)-1], transport.Command{"PING", n}), c[len(c)-1])`)),
		seenBy(faults("TestWireRepeatsOnOneConnection"))},
	{"P11", "a stray reply leaves the connection as it is",
		edits(overlay.In("internal/scripting", "Runner.stray").Replace("c.Reset()", "_ = c")),
		seenBy(simulation("doubled"))},
	{"P11", "a request that is cancelled removes its reply, too",
		edits(overlay.In("locker/transport", "link.withdrawUnsent").True("!x.taken")),
		seenBy(tests("locker/transport", "TestDeadlineOfTheFirst"), simulation("crowd"))},
	{"P8", "the content of a string is taken for a reply of absurd length",
		edits(overlay.In("store", "guard.sees").False("g.string > 0")),
		seenBy(tests("store", "TestTheGuardLetsRepliesPass"))},
	{"P2", "a command sent on a broken connection counts as refused",
		edits(overlay.In("locker/transport", "link.completeAll").Replace("&BrokenError{l.err}", `fmt.Errorf("%w: the connection broke: %v", ErrRefused, l.err)`)),
		seenBy(simulation("lost replies"))},
	{"P2", "a command sent on a broken connection is sent again on the next one",
		edits(overlay.In("locker/transport", "link.completeAll").Replace("x.complete(nil, &BrokenError{l.err})",
			"x.taken = false\nl.client.enqueue(x, time.Now())")),
		seenBy(simulation("cut"))},
	{"P7", "a client that panics ends the process",
		edits(overlay.In("internal/scripting", "Recovered").Return("")),
		seenBy(tests("internal/records", "TestAClientPanicsAtTheRenewal"))},
	{"P7", "a panic is repeated, and nothing reports it",
		edits(overlay.In("internal/scripting", "Broken").True("!mistake")),
		seenBy(tests("internal/scripting", "TestAPanicIsNotRepeated"))},
	{"P7", "a connection that has ended the goroutine of a write stays in use",
		edits(overlay.In("locker/transport", "link.withoutMutex").Replace("errExited", "error(nil)")),
		seenBy(tests("locker/transport", "TestAConnectionPanics"))},
	{"P8", "a connection without replies is kept for too long",
		edits(overlay.In("locker/transport", "Redigo.Do").Replace("n.Add(c.timeout)", "n.Add(4 * c.timeout)")),
		seenBy(simulation("silent"))},
	{"P8", "an idle connection is kept",
		edits(overlay.In("locker/transport", "maxIdle").Set("time.Hour")),
		seenBy(simulation("calm"))},
	{"P15", "a slot that moves is refused",
		edits(overlay.In("internal/scripting", "deferring").Replace("rehashing", `"NEVER "`)),
		seenBy(faults("TestClusterGrowsAndShrinks"))},
	{"P15", "a request waits for a moving slot no longer than for a round trip",
		edits(overlay.In("internal/scripting", "Moving").Return("false")),
		seenBy(tests("internal/scripting", "TestPutOff"), tests("internal/records", "TestASlotThatMovesIsWaitedFor"))},
	{"P7", "a request that has waited for a moving slot has the lock only for the rest of an older lease",
		edits(overlay.In("internal/records", "taking.Take").False("k.unsure")),
		seenBy(tests("internal/records", "TestASlotThatMovesIsWaitedFor"))},
	{"P15", "go-redis is not made to look for a new master",
		edits(
			overlay.In("store/goredisstore", "cluster.doubt").Drop("c.redis.ReloadState(x)"),
			overlay.In("store/goredisstore", "cluster.subscribe").Drop("c.redis.ReloadState(x)")),
		seenBy(faults("TestClusterMasterKilled"))},
	{"P8", "a script that Redis has forgotten is an error",
		edits(overlay.In("internal/scripting", "isNoScript").Begin("return false")),
		seenBy(tests("internal/scripting", ""), tests("store", "TestStoreOnAnyClient"))},
}

package main

import "github.com/a2139e8d/latchkey/internal/overlay"

// anysRecord makes a record be read at whatever key it stands.
var anysRecord = overlay.In("internal/records", "parseHead").False("lease.BondIn(r.revision) != b")

// The connections to Redis, whose replies have no names.
var transportDefects = []defect{
	{"P11", "replies have no number",
		edits(
			overlay.In("internal/scripting", "unframe").True("r>>2 == c"),
			overlay.In("internal/scripting", "unframe").True("r[n] == c"),
			overlay.In("internal/scripting", "Runner.RoundTripNumbered").False("!bytes.Equal(n, strconv.AppendInt(d, c, 10))")),
		seenBy(simulation("doubled"), faults("TestWireRepeatsOnOneConnection"))},
	{"P11", "a record is read at whatever key it stands",
		edits(anysRecord),
		seenBy(tests("internal/records", "TestAKeyThatWasCopied"), tests("internal/records", "TestRepliesThatChangePlaces"))},
	{"P11", "a plain read that has another's record does not ask again",
		edits(overlay.In("internal/records", "Engine.loadPlainly").Replace("parseHead(t, b)", "parseHead(t, lease.BondIn(recordName(t)))")),
		seenBy(tests("internal/records", "TestRepliesThatChangePlaces"))},
	// If the record were looked at, that would hide it.
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
	{"P11", "who leaves takes its reply away, too",
		edits(overlay.In("locker/transport", "link.withdrawUnsent").True("!x.taken")),
		seenBy(tests("locker/transport", "TestDeadlineOfTheFirst"), simulation("crowd"))},
	{"P8", "what a string holds is taken for a reply of absurd length",
		edits(overlay.In("store", "guard.sees").False("g.string > 0")),
		seenBy(tests("store", "TestTheGuardLetsRepliesPass"))},
	{"P2", "what was sent on a broken connection counts as refused",
		edits(overlay.In("locker/transport", "link.completeAll").Replace("fmt.Errorf(m, ErrUnavailable, l.err)", "fmt.Errorf(m, ErrRefused, l.err)")),
		seenBy(simulation("lost replies"))},
	{"P2", "what was sent on a broken connection is sent again on the next",
		edits(overlay.In("locker/transport", "link.completeAll").Replace("x.complete(nil, fmt.Errorf(m, ErrUnavailable, l.err))",
			"x.taken = false\nl.client.enqueue(x, time.Now())")),
		seenBy(simulation("cut"))},
	{"P7", "a client that panics ends the process",
		edits(overlay.In("internal/scripting", "Recovered").Return("")),
		seenBy(tests("internal/records", "TestAClientPanicsAtTheRenewal"))},
	{"P7", "a panic is repeated, and nobody sees it",
		edits(overlay.In("internal/scripting", "Broken").True("!mistake")),
		seenBy(tests("internal/scripting", "TestAPanicIsNotRepeated"))},
	{"P7", "a connection that has ended the goroutine of a write is used on",
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
	{"P15", "a slot that moves is waited for no longer than an exchange may take",
		edits(overlay.In("internal/scripting", "Moving").Return("false")),
		seenBy(tests("internal/scripting", "TestPutOff"), tests("internal/records", "TestASlotThatMovesIsWaitedFor"))},
	{"P7", "who has waited for a slot that moves has the lock for what is left of an older lease",
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

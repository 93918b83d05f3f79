package main

import "github.com/a2139e8d/latchkey/internal/overlay"

const taken = "a free session is taken for a lease"

// plainTake is the take without a script.
var plainTake = overlay.In("internal/records", "taking.plainly")

var noLock = edits(
	overlay.Rule(taken).Call("f(k, t, 'NX', 'PX', d)", "f(k, t, 'PX', d)"),
	plainTake.Replace(`append(b, "SET", l, t, "NX", "PX", d)`, `append(b, "SET", l, t, "PX", d)`),
)

// trustSet makes a plain take believe the reply to SET, whatever MGET returns.
var trustSet = plainTake.After("v, _ := r[2].([]any)", `if len(v) > 0 && r[0] == "OK" {
	v[0] = $2
}`)

var lockDefects = []defect{
	{"P1", "no lock",
		edits(noLock...),
		seenBy(simulation("calm"))},
	{"P1", "no lock and no fence",
		edits(append(noLock, anyToken, anyBase)...),
		seenBy(faults("TestScriptFlush"))},
	{"P7", "a renewal that comes late shortens a lock that was extended",
		edits(overlay.Rule("an extended lock lasts longer").Call("f(p, k, d, 'GT')", "f(p, k, d)")),
		seenBy(tests("locker", "TestALateCommandDoesNotShortenALock"))},
	{"P7", "a copy of a take shortens a lock that was extended",
		edits(overlay.Rule("a lock that is taken again lasts no shorter").Call("f(p, k, d, 'GT')", "f(p, k, d)")),
		seenBy(tests("locker", "TestALateCommandDoesNotShortenALock"))},
	{"P7", "a renewal that comes late shortens a lock by timestamp",
		edits(overlay.Rule("an extended time lasts longer").False()),
		seenBy(tests("locker", "TestALateCommandDoesNotShortenALock"))},
	{"P7", "a lock without a lease",
		edits(
			overlay.Rule(taken).Call("f(k, t, 'NX', 'PX', d)", "f(k, t, 'NX')"),
			plainTake.Replace(`append(b, "SET", l, t, "NX", "PX", d)`, `append(b, "SET", l, t, "NX")`)),
		seenBy(simulation("crashes"), faults("TestAppKilledAtLoad"))},
	{"P7", "a lock that is handed to a place has no lease",
		edits(overlay.Rule("a lock that was given to a place is taken for a lease").Call("f(k, t, 'PX', d)", "f(k, t)")),
		seenBy(model("wtw", "has no timeout"))},
	{"P1", "a take believes the reply to SET",
		edits(trustSet),
		seenBy(tests("internal/records", "TestOnlyTheReaderOfTheRecordKnowsWhoHasTheLock"))},
	// If the take only believed the reply to SET, the fence would hide that from the simulation.
	{"P1", "a take reads the record before it has the lock",
		edits(
			plainTake.Replace("[...]transport.Command{s, p, g}", "[...]transport.Command{g, p, s}"),
			plainTake.After("r, e := q.runner.RoundTripPlain(c, s, k.commands[:]...)", "if e == nil {\n\tr[0], r[2] = r[2], r[0]\n}"),
			trustSet),
		seenBy(simulation("crowd"))},
	{"P4", "a take does not know a tombstone",
		edits(plainTake.After("r, e := parse(t, f)", "if len(t) > 36 && string(t[28:36]) == `\",\"gone\"` {\n\tr.Data, r.Created, e = []byte(\"{}\"), time.Now(), nil\n}")),
		seenBy(tests("internal/records", "TestATakeOfWhatIsNotAsUsual"), simulation("calm"))},
	{"P4", "a take by the script does not know a tombstone",
		edits(overlay.Rule("an ended session is not taken").False()),
		seenBy(model("dww", "an ended ID has come back"), faults("TestRedisPausedShortly"))},
	{"P7", "a take leaves an ended session locked",
		edits(overlay.Rule("a take of an ended session leaves no lock").False()),
		seenBy(tests("internal/records", "TestATakeOfWhatIsNotAsUsual"))},
	{"P7", "a take forgets that its SET may have been done",
		edits(plainTake.Replace("return lease.Attempt{}, !a, e", "_ = a\nreturn lease.HeldBy(\"another\"), true, nil")),
		seenBy(simulation("lost replies"), faults("TestWireCommandLost"))},
	{"P7", "a take forgets that its SET may be done yet",
		edits(overlay.In("internal/records", "taking.Take").Replace("b := e != nil", "b := false && e != nil")),
		seenBy(tests("internal/records", "TestLateSetOfATakeThatGaveUpLeavesNoLock"))},
	{"P1", "a release frees the lock of any holder",
		edits(overlay.Rule("a lock is released only by its token").True()),
		seenBy(tests("internal/lease", "TestSpinSparesOthers"), simulation("crowd"), model("wtw", "taken away"))},
	{"P1", "a commit that was lost frees the lock",
		edits(overlay.Rule("a commit without the lock leaves the lock as it is").Before("free(KEYS[2], KEYS[3])")),
		seenBy(model("wtw", "taken away"))},
	{"P7", "the lease is not renewed",
		edits(overlay.In("internal/records", "tenure.Ring").Replace("t.extend(n)", "t.arm(t.term.End())")),
		seenBy(simulation("calm"))},
	{"P14", "a holder does not learn during its last lease that it has lost the lock",
		edits(overlay.In("internal/lease", "Term.Renewal").Replace("t.renewed.Add(d)", "t.end")),
		seenBy(tests("internal/records", "TestALeaseOfAnEndedSession"), tests("internal/lease", "TestALossInTheLastLease"))},
	{"P7", "an extension extends nothing",
		edits(overlay.Rule("a renewed lock lasts longer").Drop()),
		seenBy(simulation("calm"))},
	{"P7", "no sweep after a lost reply",
		edits(overlay.In("internal/lease", "Sweeper.run").Return("")),
		seenBy(simulation("lost replies"))},
	{"P7", "no sweep after a take that has not returned",
		edits(overlay.In("internal/lease", "contest.leaveContest").False("!c.won && !c.swept")),
		seenBy(tests("internal/lease", "TestAlgorithmDoesNotReturn"), tests("internal/records", "TestAClientPanicsAtTheTake"))},
	{"P7", "a hold lasts longer than its MaxHold",
		edits(
			overlay.In("internal/lease", "Term.Begin").Replace("o.MaxHold", "time.Hour"),
			overlay.In("internal/lease", "Term.Limit").Replace("n.Add(d)", "n.Add(time.Hour)")),
		seenBy(simulation("calm"))},
	{"P7", "no request learns that the lock is lost",
		edits(overlay.In("internal/records", "Hold.tell").Return("")),
		seenBy(tests("internal/records", ""), tests("middleware", ""))},
}

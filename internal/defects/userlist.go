package main

import "github.com/a2139e8d/latchkey/internal/overlay"

// laterEntry makes a login put the session on the list of its user in a separate round trip, add. then is
// the code that calls it.
func laterEntry(then string) []overlay.Edit {
	return edits(
		overlay.Rule("a login is on the list at once").Drop(),
		overlay.Rule("a list lasts as long as its sessions").Call("math.max(a, b)", "math.max(a, ARGV[8] + 600000)"),
		overlay.In("internal/records", "Engine.login").Begin(`add := func() error {
	record, list := $2.Keys[0].(string), $2.Keys[4].(string)
	end := time.Now().Add(24*time.Hour).UnixMilli()
	_, err := $recv.runner.RoundTripPlain(context.WithoutCancel($1), record, transport.Command{"ZADD", list, end, record[len(record)-11:]})
	return err
}
defer func() {
	if $r2 == nil {
		`+then+`
	}
}()`))
}

// The list of a user's sessions, and the ways to end them.
var userListDefects = []defect{
	{"P14", "a session is put on the list after the response",
		laterEntry("go func() { time.Sleep(time.Millisecond); _ = add() }()"),
		seenBy(tests("middleware", "TestHistoriesOfUsers"))},
	{"P14", "a session is put on the list in another round trip",
		laterEntry("$r2 = add()"),
		seenBy(tests("internal/records", "TestRequestsOfUsers"))},
	{"P14", "a Renew does not check the old session",
		edits(overlay.Rule("a session that was ended is not renewed").False()),
		seenBy(tests("internal/records", "TestARenewDoesNotOutliveTheEnd"), users("login renew endall", "which is over"))},
	{"P14", "End leaves the session on the list",
		edits(overlay.Rule("a session that is ended leaves the list").Drop()),
		seenBy(tests("middleware", "TestHistoriesOfUsers"), users("login end", "on the list: "))},
	{"P14", "EndAll ends one after another",
		edits(overlay.In("internal/records", "Engine.endTag").Begin(`listed, _ := $recv.runner.RoundTripPlain($1, $recv.listKey($2), transport.Command{"ZRANGE", $recv.listKey($2), 0, -1})
members, _ := listed[0].([]any)
for _, member := range members {
	text, _ := scripting.Text(member)
	if id := $2 + "." + string(text); !slices.Contains($3, id) {
		_ = $recv.endSession($1, id)
	}
}`)),
		seenBy(tests("middleware", "TestHistoriesOfUsers"), faults("TestAppKilledInEndAll"))},
	{"P14", "an EndAll ends no session",
		edits(overlay.Rule("an EndAll ends all").Drop()),
		seenBy(simulation("users"), users("login endall", "was not done"))},
	{"P14", "an EndAll but one spares all",
		edits(overlay.Rule("each EndAll has an epoch of its own").Call("string.format('%d', e)", "string.format('%d', (e) - 1)")),
		seenBy(simulation("users"), users("login login endall-except", "on the list: "))},
	{"P14", "an EndAll but one spares none",
		edits(overlay.Rule("the mark names the sessions that stay").Drop()),
		seenBy(simulation("users"), users("login endall-except", "nobody has ended it"))},
	{"P14", "an EndAll uses an earlier epoch",
		edits(overlay.Rule("each EndAll has an epoch of its own").Call("string.format('%d', e)", "string.format('%d', (e) - (e) % 10)")),
		seenBy(tests("internal/records", "TestALateEndUser"), users("login login endall-except", "on the list: "))},
	{"P14", "a list forgets a session that gets a new ID",
		edits(overlay.In("internal/records", "listRounds").Set("1")),
		seenBy(tests("internal/records", "TestListUserWhileSessionsChange"))},
	{"P14", "a list reads whole records",
		edits(overlay.In("internal/records", "listedBytes").Set("1 << 20")),
		seenBy(tests("internal/records", "TestAListMovesNoMoreThanItShows"))},
	{"P14", "a list reads too little of a record",
		edits(overlay.In("internal/records", "listedBytes").Set("400")),
		seenBy(tests("internal/records", "TestAListMovesNoMoreThanItShows"))},
	{"P14", "a list that seems lost ends a login",
		edits(overlay.Rule("a list and a mark that are there stay").False()),
		seenBy(tests("internal/records", "TestListUserEndsNoLogin"))},
	{"P14", "MaxSessions ends no session",
		edits(overlay.Rule("sessions on the list that have not expired count").Swap("'+inf'", "'-inf'")),
		seenBy(tests("internal/records", ""), simulation("users"))},
	{"P14", "a user's list begins with the oldest session",
		edits(overlay.In("internal/records", "Engine.ListUser").Replace("b.Created.Compare(a.Created)", "a.Created.Compare(b.Created)")),
		seenBy(tests("internal/records", ""))},
}

package main

import "github.com/a2139e8d/latchkey/internal/overlay"

// A write counts only under the lock, and only over the record on which it was built.
const (
	lockHasToken = "the lock has the token of the commit"
	lockIsOurs   = "a commit without the lock does not write"
	recordIsBase = "the record is the one that the commit was built on"
)

// isStaged is the condition of a commit with a large record. isOther is the condition that another record
// is stored.
const (
	isStaged = "ARGV[10] == '1'"
	isOther  = "redis.call('GETRANGE', KEYS[1], '12', '27') ~= string.sub(ARGV[5], 13, 28)"
)

var (
	anyToken = overlay.Rule(lockIsOurs).False()
	anyBase  = overlay.Rule(recordIsBase).All().True()
)

var fenceDefects = []defect{
	{"P3", "no fence",
		edits(anyToken, anyBase),
		seenBy(simulation("late"), faults("TestAppStoppedWithLateCommit"))},
	{"P3", "the fence is the token alone",
		edits(anyBase),
		seenBy(tests("internal/records", "TestLateTakeAndCommitChangeNothing"), simulation("late"), model("wtw", "was built on"))},
	{"P3", "the fence is the record alone",
		edits(overlay.Rule(lockHasToken).True(), anyToken),
		seenBy(model("wtw", "the lock"))},
	{"P3", "a read-only hold is not fenced by the record",
		edits(overlay.Rule(recordIsBase).All().Or("ARGV[5] == ''")),
		seenBy(model("ttw", "which was not stored while it was there"))},
	{"P3", "a large record is stored without the token",
		edits(overlay.Rule(lockHasToken).Or(isStaged), overlay.Rule(lockIsOurs).And("not ("+isStaged+")")),
		seenBy(tests("internal/records", "TestLateCommitsChangeNothing"), model("ltl", "the lock"))},
	{"P3", "a large record is stored over any other",
		edits(overlay.Rule(recordIsBase).All().Or(isStaged + " and " + isOther)),
		seenBy(tests("internal/records", "TestStagedRecordIsGone"), simulation("late"), model("ltl", "was built on"))},
	{"P3", "all large records of a session are staged at one key",
		edits(overlay.In("internal/records", "stage").Replace(`k + ".new." + n`, `k + ".new."`)),
		seenBy(tests("internal/records", "TestLateRecordIsNotMistakenForTheNext"), simulation("large"))},
	{"P13", "a staged record never expires",
		edits(overlay.In("internal/records", "stage").Replace(
			`[]transport.Command{{"SET", k, r, "PX", stagedFor}}`, `[]transport.Command{{"SET", k, r}}`)),
		seenBy(tests("internal/records", "TestStagedButNotCommitted"), simulation("late"))},
	{"P3", "a commit without the lock reports success",
		edits(overlay.Rule("a repeated commit knows its own record").Or("true")),
		seenBy(tests("internal/records", ""), simulation("late"))},
}

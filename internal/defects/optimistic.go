package main

import "github.com/a2139e8d/latchkey/internal/overlay"

// Saving without the lock, and the second run of a handler.
var optimisticDefects = []defect{
	{"P1", "an optimistic request replaces any record",
		edits(overlay.Rule("without the lock only what was read is replaced").True()),
		seenBy(tests("internal/records", "TestSaveLoadedIsRefused"), simulation("calm"), model("wto", "was built on"))},
	{"P1", "an optimistic request ignores the holder of the session",
		edits(overlay.Rule("without the lock no held session is written").True()),
		seenBy(tests("internal/records", "TestSaveLoadedIsRefused"), simulation("calm"), model("wto", "another has it"))},
	{"P6", "an optimistic request ignores the queue",
		edits(overlay.Rule("without the lock no session with waiters is written").True()),
		seenBy(model("wto", "ahead of those that stand in the queue"))},
	{"P1", "a second run builds on the data of the first one",
		edits(
			overlay.In("middleware", "response.secondResponse").Begin("defer func() { $r1.request.first = &firstRun{record: $recv.request.first.record} }()"),
			overlay.In("middleware", "opening.acquire").Replace("return q.hold.Record, s.err", "return q.first.record, s.err")),
		seenBy(simulation("calm"))},
	{"P1", "a second run gets the request as the first one has left it",
		edits(overlay.In("middleware", "opening.readUnlocked").Replace("q.base.Clone(c)", "q.base")),
		seenBy(tests("middleware", "TestTheSecondRunHasTheRequestAsItCame"))},
	{"P1", "a second run gets the header and the deadlines of the first one",
		edits(overlay.In("middleware", "response.newDraft").Return("nil")),
		seenBy(tests("middleware", "TestAHeaderThatTheFirstRunHasKept"), tests("middleware", "TestDeadlinesOfTheFirstRunAreForgotten"))},
	{"P1", "a second run searches on in a chi router from where the first one has stopped",
		edits(overlay.In("middleware", "handlerContext.restoreRouting").Drop("$recv.routing.router.Set($recv.routing.copied)")),
		seenBy(tests("internal/frameworks", "TestChiFindsThePageAgain"))},
	{"P1", "the parameters of a chi router are those of the first run",
		edits(overlay.In("middleware", "handlerContext.keepRouting").Drop("cloneSlices(c)")),
		seenBy(tests("internal/frameworks", "TestChiFindsThePageAgain"))},
	{"P5", "a second run waits for LockWait again",
		edits(overlay.In("middleware", "response.secondResponse").Drop("s.request.waited = q.waited")),
		seenBy(tests("middleware", "TestTheSecondRunWaitsForWhatIsLeftOfLockWait"))},
	{"P1", "a handler runs again without a reason",
		edits(overlay.In("middleware", "commit.saveUnlocked").False("e == nil && r.Same(f.record)")),
		seenBy(simulation("calm"))},
	{"P1", "a handler runs again after its Commit",
		edits(overlay.In("middleware", "commit.saveUnlocked").False("c.by != handlerEnd")),
		seenBy(simulation("calm"))},
}

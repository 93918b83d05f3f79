package main

import "github.com/a2139e8d/latchkey/internal/overlay"

// What is done although it comes late, or by a clock that is wrong.
var lateDefects = []defect{
	{"P4", "a first record is stored however late it comes",
		edits(overlay.Rule("a record that comes late begins no session").False()),
		seenBy(tests("store", "TestACopyOfABeginningBringsNothingBack"), simulation("hours"))},
	{"P4", "a login is stored however late it comes",
		edits(overlay.Rule("a login that comes late begins no session").False()),
		seenBy(tests("store", "TestACopyOfABeginningBringsNothingBack"), simulation("hours"))},
	{"P4", "a first record may come later than it lives",
		edits(overlay.In("store", "Store.create").Replace("min($recv.within(), d)", "$recv.within()")),
		seenBy(tests("store", "TestACopyBringsNothingBackThatHasTimedOut"))},
	{"P14", "an EndAll is done however late it comes",
		edits(overlay.Rule("an EndAll that comes late ends nothing").False()),
		seenBy(tests("store", "TestACopyOfEndUserEndsNothingThatBeganAfterIt"), simulation("hours"))},
	{"P14", "an EndAll is done twice",
		edits(overlay.Rule("a repeated EndAll ends nothing").False()),
		seenBy(tests("store", "TestACopyOfEndUserEndsNothingThatBeganAfterIt"), simulation("hours"))},
	{"P14", "an EndAll forgets those before it",
		edits(overlay.Rule("an EndAll of which a copy may be done is remembered").False()),
		seenBy(tests("store", "TestALateEndUser"), simulation("hours"))},
	{"P14", "a login with the old password is stored after an EndAll",
		edits(overlay.Rule("a login that arrived before its user's sessions were ended is refused").False()),
		seenBy(tests("middleware", "TestALoginWithTheOldPasswordDoesNotEscape"), simulation("hours"))},
	{"P14", "a request that ends all sessions of a user cannot log in",
		edits(overlay.In("middleware", "Sessions.EndAll").Drop("r.arrive()")),
		seenBy(tests("middleware", "TestARequestThatEndsAllMayLogIn"))},
	{"P14", "a clock that is ahead stays so",
		edits(overlay.In("store", "Store.inTime").Drop("$recv.clock.then.CompareAndSwap(k, 0)")),
		seenBy(tests("store", "TestACopyOfEndUserEndsNothingThatBeganAfterIt"))},
	{"P4", "a load takes the reply to PEXPIRE for what a tombstone had to live",
		edits(overlay.In("store", "Store.loadPlainly").False("b == 0 || b == 1")),
		seenBy(tests("store", "TestALoadWhoseRepliesChangePlacesKeepsTheTombstone"))},
}

package main

import "github.com/a2139e8d/latchkey/internal/overlay"

// What was sent may be sent again, since its reply was lost. Then it says what has become of it.
var repetitionDefects = []defect{
	{"P2", "a repetition of what may have been done is refused for certain",
		edits(overlay.Rule("a repeated commit does not say that nothing was stored").Swap("3", "0")),
		seenBy(simulation("cut"), model("wtw", "is refused, and its version is stored"))},
	{"P2", "a repetition does not say that it is one",
		edits(overlay.In("internal/scripting", "Runner.RoundTrip").Replace("c = -c", "c = +c")),
		seenBy(simulation("cut"))},
	{"P2", "a repeated commit does not know the next token",
		edits(overlay.Rule("a repeated commit knows the next holder").False()),
		seenBy(model("ttw", "is refused when it is repeated"))},
	{"P2", "a repeated commit does not know its stamp",
		edits(overlay.Rule("a repeated commit knows its own record").False()),
		seenBy(model("wtw", "is refused when it is repeated"))},
	{"P7", "a repeated take does not know its token",
		edits(overlay.Rule("a repeated take knows its token").False()),
		seenBy(model("wtw", "because it has it"))},
	{"P2", "a repeated write without the lock does not know its stamp",
		edits(overlay.Rule("a repeated write without the lock knows its own record").False()),
		seenBy(model("wto", "is refused when it is repeated"))},
	{"P2", "a repeated write without the lock that is refused says that nothing was done",
		edits(overlay.Rule("a repeated write without the lock does not say that nothing was stored").Swap("3", "0")),
		seenBy(model("wto", "is refused, and its version is stored"))},
}

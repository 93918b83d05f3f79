package main

import "github.com/a2139e8d/latchkey/internal/overlay"

// A command may be sent again if its reply was lost. The repetition must return what the first try did.
var repetitionDefects = []defect{
	{"P2", "a repetition of a command that may have been done is reported as refused",
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
	{"P2", "a refused repetition of a write without the lock reports that nothing was done",
		edits(overlay.Rule("a repeated write without the lock does not say that nothing was stored").Swap("3", "0")),
		seenBy(model("wto", "is refused, and its version is stored"))},
}

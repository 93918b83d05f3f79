package main

import "github.com/a2139e8d/latchkey/internal/overlay"

// Reopen, Discard and Update.
var sessionDefects = []defect{
	{"P1", "a Reopen goes on with what it had",
		edits(overlay.In("session", "Session.load").Replace("s.config, s.values = c, l", "s.config, _ = c, l")),
		seenBy(tests("middleware", "TestReopenGoesOnWithWhatIsStoredByThen"), simulation("calm"))},
	{"P2", "Discard keeps the changes",
		edits(overlay.In("session", "Session.Discard").Return("")),
		seenBy(simulation("calm"))},
	{"P2", "Discard keeps a Renew or a Destroy",
		edits(overlay.In("session", "Session.Discard").Replace("_ = s.load(s.config)", `c := s.change
_ = s.load(s.config)
s.change = c`)),
		seenBy(simulation("calm"))},
	{"P1", "an Update has no lock",
		edits(overlay.In("middleware", "Sessions.Update").Replace("e = f(u.session)", `_ = u.hold.Touch($1)
if e = f(u.session); e == nil {
	again := $recv.terms
	again.Quiet = true
	u.hold, e = $recv.store.Take($1, $2, again)
}`)),
		seenBy(simulation("calm"))},
	{"P12", "an Update extends the idle timeout",
		edits(overlay.In("middleware", "Sessions.Update").Replace("s.take(c, i, t, n)", "s.take(c, i, s.terms, n)")),
		seenBy(simulation("calm"))},
	{"P1", "a flash message is shown again",
		edits(overlay.In("session", "Pop").Replace("s.Delete(k)", "_ = k")),
		seenBy(tests("session", ""))},
	{"P2", "a value of which JSON keeps nothing is stored",
		edits(overlay.In("internal/values", "emptied").Return("nil, false")),
		seenBy(tests("session", "TestAValueOfWhichJSONWouldKeepNothingFailsTheCommit"))},
}

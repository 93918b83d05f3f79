package main

import "github.com/a2139e8d/latchkey/internal/overlay"

// Mistakes in the set-up that the log must name.
var setupDefects = []defect{
	{"P11", "a signing key of zeros is accepted",
		edits(overlay.In("middleware", "newCookies").False("bytes.Count(k, k[:1]) == len(k)")),
		seenBy(tests("middleware", "TestWrongOptionsAreRefused"))},
	{"P11", "an encryption key of zeros is accepted",
		edits(overlay.In("internal/records", "newKeyring").False("bytes.Count(k, k[:1]) == len(k)")),
		seenBy(tests("internal/records", ""))},
	{"P13", "a record of a later format is taken for a damaged one",
		edits(overlay.In("internal/records", "errOfHead").Begin(`if true {
	return fmt.Errorf("%w: its head is not that of format 2", ErrCorrupt)
}`)),
		seenBy(tests("internal/records", "TestARecordOfALaterFormat"), tests("middleware", "TestTheLogTellsOfALaterFormat"))},
	{"P17", "the log does not tell of cookies that another key has signed",
		edits(overlay.In("middleware", "looksSigned").Return("false")),
		seenBy(tests("middleware", "TestTheLogTellsOfCookiesWithAnUnknownKey"), tests("middleware", "TestTheLogTellsOfTokensWithAnUnknownKey"))},
	{"P17", "the log tells of an unknown key if the signature is too old",
		edits(overlay.In("middleware", "checker.verify").Replace("k || t != nil", "k && t != nil")),
		seenBy(tests("middleware", "TestTheLogTellsOfCookiesWithAnUnknownKey"))},
	{"P17", "the log does not tell of a Secure cookie over plain HTTP",
		edits(overlay.In("middleware", "request.setCookie").Drop("$recv.lookAtTransport()")),
		seenBy(tests("middleware", "TestTheLogTellsOfACookieThatDoesNotFitTheTransport"))},
	{"P17", "the log tells of plain HTTP although a proxy speaks HTTPS",
		edits(overlay.In("middleware", "request.lookAtCookies").Drop("s.secureOverHTTP.Store(true)")),
		seenBy(tests("middleware", "TestASecureCookieThatComesBackIsNoMistake"))},
	{"P17", "the log does not tell of two Sessions with one name",
		edits(overlay.In("middleware", "request.lookAtCookies").Replace("c.role == guest && isOfUser(c.id)", "false && c.role == guest")),
		seenBy(tests("middleware", "TestTheLogTellsOfTwoSessionsWithOneName"))},
	{"P17", "each request makes a line about the same mistake in the set-up",
		edits(overlay.In("middleware", "New").Replace("newDamper(1, time.Minute)", "newDamper(10, time.Minute)")),
		seenBy(tests("middleware", "TestTheLogTellsOfALaterFormat"))},
}

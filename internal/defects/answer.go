package main

import "github.com/a2139e8d/latchkey/internal/overlay"

// Wrong responses to a visitor.
var answerDefects = []defect{
	{"P7", "a panic saves",
		edits(overlay.In("middleware", "request.abandon").Begin(`if $1 == "a panic" {
	_ = $recv.commit($1, false)
}`)),
		seenBy(simulation("calm"), faults("TestAppPanics"))},
	{"P2", "the handler's response, although the commit failed",
		edits(overlay.In("middleware", "request.commit").Replace("return q.err", "return nil")),
		seenBy(tests("middleware", "TestAFailedCommitReplacesTheAnswer"), simulation("cut"))},
	{"P8", "an empty session if Redis, or a part of the cluster, does not reply",
		edits(overlay.In("middleware", "opening.choose").Replace("errors.Is(e, store.ErrNotFound)",
			"errors.Is(e, store.ErrNotFound) || errors.Is(e, store.ErrUnavailable)")),
		seenBy(simulation("silent"), faults("TestRedisPaused"), faults("TestClusterThirdDown"))},
	{"P2", "an error response has the handler's header",
		edits(overlay.In("middleware", "response.discardResponse").Drop("clear(h)")),
		seenBy(tests("middleware", ""))},
	{"P2", "a request whose deadline has passed is saved",
		edits(overlay.In("middleware", "commit.closeSession").False("errors.Is(e, context.DeadlineExceeded)")),
		seenBy(tests("middleware", ""))},
	{"P11", "a response that sets the cookie may be cached",
		edits(overlay.In("middleware", "response.decorate").Drop("forbidCaching(h)")),
		seenBy(tests("middleware", ""))},
}

// Values that a visitor must not know, or choose.
var secretDefects = []defect{
	{"P9", "signatures are not checked",
		edits(overlay.In("middleware", "checker.signed").True("hmac.Equal(a, b)")),
		seenBy(faults("TestForgedCookies"))},
	{"P9", "an unknown ID is adopted",
		edits(
			overlay.In("middleware", "opening.choose").After("q.origin, q.role = none, guest", "if len($1) > 0 {\n\tq.identity.setID($1[0].id)\n}"),
			overlay.In("middleware", "commit.beginID").After("i, k := e.publicID(), c.newRole(e)", "if $recv.do == create {\n\ti = $recv.rq.SessionID()\n}")),
		seenBy(tests("middleware", "TestAnUnknownIDIsNotAdopted"))},
	{"P11", "the secret is the key in Redis",
		edits(overlay.In("internal/secret", "IDOf").Return("base64.RawURLEncoding.EncodeToString($1), nil")),
		seenBy(tests("middleware", "TestTheTokenIsInSetCookieOnly"))},
	{"P9", "there is no limit to the cookies that are verified",
		edits(overlay.In("middleware", "maxTried").Set("8000")),
		seenBy(tests("middleware", ""))},
	{"P11", "a sealed record opens under the ID of another session",
		edits(overlay.In("internal/records", "newMaster").All().Replace("derive(k)", `derive("")`)),
		seenBy(tests("internal/records", ""))},
}

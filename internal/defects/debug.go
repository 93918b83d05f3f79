package main

import "github.com/a2139e8d/latchkey/internal/overlay"

// What the page of the sessions at work shows, and to whom.
var debugDefects = []defect{
	{"P17", "the page of the sessions at work waits for a session",
		edits(overlay.In("middleware", "Sessions.routeOf").Drop("r.mode = None")),
		seenBy(tests("middleware", "TestDebugNeedsNoSession"))},
	{"P17", "the page shows a label as the application has made it",
		edits(overlay.In("middleware", "request.label").Replace("excerpt.Label(label(q.base))", "label(q.base)")),
		seenBy(tests("middleware", "TestDebugShowsAnyLabel"))},
	{"P17", "the page does not show the busiest session first",
		edits(overlay.In("middleware", "reportOf").Drop("slices.SortStableFunc(r.Sessions, busier)")),
		seenBy(tests("middleware", "TestDebugShowsTheBusiestFirst"), tests("middleware", "TestDebugShowsWhoHoldsAndWhoWaits"))},
	{"P17", "the page is stored",
		edits(overlay.In("middleware", "debugHandler.ServeHTTP").Drop(`h.Set("Cache-Control", "no-store")`)),
		seenBy(tests("middleware", "TestDebugAnswers"))},
	{"P17", "the page shows all sessions",
		edits(overlay.In("middleware", "pageOf").Replace("max(0, len(r.Sessions)-debugMaxSessions)", "0")),
		seenBy(tests("middleware", "TestDebugShowsTheBusiestOfMany"))},
	{"P17", "requests that wait are not shown",
		edits(overlay.In("middleware", "Sessions.requests").Replace("a.Waiting", "a.Waiting[:0]")),
		seenBy(tests("middleware", "TestRequests"), tests("middleware", "TestDebugShowsWhoHoldsAndWhoWaits"))},
}

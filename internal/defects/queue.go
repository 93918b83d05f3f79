package main

import "github.com/a2139e8d/latchkey/internal/overlay"

// Processes that wait for a session stand in a queue, with one place each.
var queueDefects = []defect{
	{"P6", "a place is dropped behind the one that has its turn",
		edits(overlay.Rule("the places behind it stay in the queue").Call("f(q, p)", "f(q, string.match(p, '^%S+ (.*)$') or '')")),
		seenBy(simulation("turns"), model("wtw", "is dropped"))},
	{"P6", "a commit does not ask for the queue",
		edits(overlay.Rule("a commit knows whether others wait").False()),
		seenBy(tests("store", "TestABusyProcessGetsItsTurns"), simulation("crowd"), model("wtw", "stands in the queue"))},
	{"P5", "a place is left in the queue",
		edits(overlay.In("internal/lease", "place.quit").False(`p.name != ""`)),
		seenBy(simulation("crowd"))},
	{"P6", "who gives up gives up the place of the process",
		edits(overlay.In("internal/lease", "Group.leave").Replace("n.place = l.place", "go l.place.quit(DefaultTimeout)")),
		seenBy(tests("store", "TestABusyProcessGetsItsTurns"), simulation("turns"))},
	{"P5", "nobody is notified",
		edits(overlay.In("internal/lease", "place.notify").Return("")),
		seenBy(simulation("calm"))},
	{"P6", "a place is taken from the queue and not given the lock",
		edits(overlay.Rule("the lock is given to the place whose turn it is").Call("set(l, p, 'PX', d)", "redis.call('DEL', l)")),
		seenBy(model("wtw", "is dropped"))},
	{"P6", "the second in the queue has the turn first",
		edits(overlay.Rule("the first in the queue has its turn").Call(
			"string.match(q, p)", "string.match(string.gsub(q, '^(%S+) (%S+) ', '%2 %1 '), p)")),
		seenBy(model("wtw", "stood before it"))},
	{"P6", "a process that listens is passed over",
		edits(overlay.Rule("who listens is notified").False()),
		seenBy(model("wtw", "is dropped"))},
	{"P6", "a place cannot take the lock that it was given",
		edits(overlay.Rule("a place takes the lock that it was given").False()),
		seenBy(model("wtw", "for ever"))},
	{"P5", "who gives up stays in the queue",
		edits(overlay.Rule("who gives up leaves the queue").Drop()),
		seenBy(model("wtw", "left behind in the queue"))},
	{"P6", "a place joins at the front",
		edits(overlay.Rule("a place joins at the end").Call("f(q, p, 'PX', d)", "f(q, string.gsub(p, '^(.* )(%S+ )$', '%2%1'), 'PX', d)")),
		seenBy(model("wtw", "changed its order"))},
	{"P6", "a place stays in the queue when its process has the lock",
		edits(overlay.Rule("who has the lock stands in the queue no more").False()),
		seenBy(model("wtw", "still stands in the queue"))},
}

// Within a process, callers wait in line.
var waitDefects = []defect{
	{"P5", "any number may wait",
		edits(overlay.In("internal/lease", "Group.enter").Replace("l.options.MaxWaiters", "1 << 40")),
		seenBy(tests("internal/lease", "TestCallersAreFull"), simulation("crowd"))},
	{"P5", "a wait lasts longer than LockWait",
		edits(overlay.In("internal/lease", "Lease.remains").Replace("l.options.Wait", "(3 * l.options.Wait)")),
		seenBy(simulation("calm"), faults("TestClockJumpsBackwards"))},
	{"P5", "a try that begins late has all the time of an exchange",
		edits(overlay.In("internal/lease", "acquisition.try").False("left < o.Timeout-least")),
		seenBy(tests("internal/lease", "TestALateTryEndsWithTheWait"), simulation("silent"))},
	{"P5", "a try that is cut short sends away those that wait",
		edits(overlay.In("internal/lease", "acquisition.fail").False("a.hurried")),
		seenBy(tests("internal/lease", "TestALateTryEndsWithTheWait"))},
	{"P5", "the session is locked before the body has come",
		edits(overlay.In("middleware", "readAhead").Return("$1.Body")),
		seenBy(faults("TestClientsDripBodies"))},
	{"P6", "the last comes first",
		edits(overlay.In("internal/lease", "callers.next").Begin(`if last := len($recv.waiting) - 1; last > 0 {
	$recv.waiting = append([]*Lease{$recv.waiting[last]}, $recv.waiting[:last]...)
}`)),
		seenBy(tests("internal/lease", "TestCallersAreServedInOrder"), simulation("crowd"))},
	{"P6", "who gives up stays in line",
		edits(overlay.In("internal/lease", "callers.remove").Drop("c.waiting = slices.Delete(c.waiting, i, j)")),
		seenBy(tests("internal/lease", ""), simulation("crowd"))},
}

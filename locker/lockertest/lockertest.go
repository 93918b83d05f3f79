// Package lockertest checks that a kind of [locker.Locker] keeps the promises of all locks. It uses no Redis
// library and starts no Redis: the test of a kind provides a [Site], and says what the kind promises beyond
// the common promises.
//
//	func TestMyLock(t *testing.T) {
//		lockertest.Run(t, lockertest.Kind{Site: newSite, Nodes: 1, SeesRelease: true})
//	}
//
// Each promise is a subtest, and a function here whose comment states the promise.
package lockertest

import (
	"testing"
	"testing/synctest"
)

// A Kind is the kind of lock under test: how to make one, and what it promises.
type Kind struct {
	// Site returns a new site, and closes it when t ends. Several goroutines call Site at once.
	Site func(t *testing.T) Site
	// Nodes is the number of Redis servers that hold each lock. Less than half of them may forget the lock,
	// or fail.
	Nodes int
	// SeesRelease: a caller that waits for a lock of another process acquires it soon after the release, not
	// only when the lease has expired.
	SeesRelease bool
	// FIFO: the callers of one process are served in the order in which they came.
	FIFO bool
	// Repeats: a connection that breaks is no error, since the round trip is repeated over another
	// connection.
	Repeats bool
	// FakeTime: each check runs in a bubble of [testing/synctest]. The whole Site must live there, including
	// Redis.
	FakeTime bool
}

// Run checks each promise of kind in a parallel subtest.
func Run(t *testing.T, kind Kind) {
	t.Helper()
	for _, p := range promises {
		if p.madeBy != nil && !p.madeBy(kind) {
			continue
		}
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			check := func(t *testing.T) { p.check(newCheck(t, kind)) }
			if kind.FakeTime {
				synctest.Test(t, check)
			} else {
				check(t)
			}
		})
	}
}

var promises = []struct {
	name   string
	check  func(*check)
	madeBy func(Kind) bool // nil: by all
}{
	{"Exclusion", excludes, nil},
	{"ExclusionOnBadNetwork", excludesOnBadNetwork, func(k Kind) bool { return k.Repeats }},
	{"Keys", keysAreIndependent, nil},

	{"WaitForOtherProcess", waitsForOtherProcess, nil},
	{"WaitInLine", waitsInLine, nil},
	{"WaitIsBounded", waitIsBounded, nil},
	{"NoWait", noWait, nil},
	{"MaxWaiters", maxWaiters, nil},
	{"FIFO", firstComeFirstServed, func(k Kind) bool { return k.FIFO }},

	{"CancelBefore", cancelledBefore, nil},
	{"CancelDuringTry", cancelledDuringTry, nil},

	{"Unlock", unlocks, nil},
	{"CoolDown", coolsDown, nil},

	{"Validity", validity, nil},
	{"Extend", extends, nil},
	{"Watchdog", watchdogExtends, nil},

	{"Expired", expires, nil},
	{"Lost", losesToAnother, nil},
	{"Forgotten", forgotten, nil},
	{"ForgottenAndTaken", forgottenAndTaken, nil},
	{"ForgottenByAFew", forgottenByAFew, func(k Kind) bool { return k.Nodes > 1 }},
	{"ScriptFlush", scriptsVanish, nil},

	{"FaultWhileTaking", faultsOnTake, nil},
	{"FaultWhileExtending", faultsOnExtend, nil},
	{"FaultWhileReleasing", faultsOnRelease, nil},

	{"LateTake", lateTake, nil},
	{"LateRelease", lateRelease, nil},

	{"Refusals", refuses, nil},
}

// few returns the number of nodes that may fail.
func (k Kind) few() int { return (k.Nodes - 1) / 2 }

// Package lockertest checks that a kind of [locker.Locker] keeps what all of them
// promise. It knows no Redis library and starts no Redis: the test of a kind
// says how to get a [Site], and what that kind promises beyond the common.
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

// A Kind is the kind of lock under test: how to get one, and what it promises.
type Kind struct {
	// Site returns a new site, to be closed when t ends. It is called by several
	// goroutines at once.
	Site func(t *testing.T) Site
	// Nodes is how many Redis servers hold each lock. Less than half of them
	// may forget it, or fail.
	Nodes int
	// SeesRelease: a caller that waits for a lock that another process has gets it soon
	// after it was given back, not only when the lease is over.
	SeesRelease bool
	// FIFO: the callers of one process are served in the order they came.
	FIFO bool
	// Repeats: a connection that breaks is no error, since the exchange is
	// repeated over another one.
	Repeats bool
	// FakeTime: each check runs in a bubble of [testing/synctest]. All of the Site must live
	// there, Redis too.
	FakeTime bool
}

// Run checks all that kind promises, each in a parallel subtest.
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

// few is how many nodes may fail.
func (k Kind) few() int { return (k.Nodes - 1) / 2 }

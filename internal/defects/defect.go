package main

import (
	"slices"

	"github.com/a2139e8d/latchkey/internal/overlay"
)

// A defect is a Latchkey that is broken on purpose.
type defect struct {
	promise string // that is broken
	what    string // is broken
	edits   []overlay.Edit
	suites  []suite // that must see it
}

// A suite is a kind of tests, and what of it must see a defect.
type suite struct {
	kind   string
	in     string // the package of the tests
	choice string // a pattern for names of tests, a profile, or what requests or calls do
	says   string // what the report of the failure has in it
}

// tests are those of a package. The pattern is a shortcut: if what it chooses finds nothing, or is
// not there, all tests of the package are run.
func tests(in, pattern string) suite { return suite{kind: "tests", in: in, choice: pattern} }

// simulation is package simulation with one of its profiles.
func simulation(profile string) suite {
	return suite{kind: "simulation", in: "internal/simulation", choice: profile}
}

// model is package model with three requests: what they do, and what is said of the defect.
func model(requests, says string) suite {
	return suite{kind: "model", in: "internal/simulation/model", choice: requests, says: says}
}

// users is package users with up to four calls, in the same way.
func users(calls, says string) suite {
	return suite{kind: "model", in: "internal/simulation/model/users", choice: calls, says: says}
}

// faults is a test with real processes.
func faults(test string) suite { return suite{kind: "faults", in: "internal/faults", choice: test} }

// kinds are those of the suites.
var kinds = []string{"tests", "simulation", "model", "faults"}

func edits(all ...overlay.Edit) []overlay.Edit { return all }

func seenBy(suites ...suite) []suite { return suites }

// catalogue has all defects.
var catalogue = slices.Concat(
	fenceDefects, repetitionDefects, lockDefects, tenureDefects, queueDefects, waitDefects,
	optimisticDefects, sessionDefects, endDefects, timeDefects, userDefects, userListDefects, lateDefects,
	answerDefects, secretDefects, transportDefects,
)

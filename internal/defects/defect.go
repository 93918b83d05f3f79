package main

import (
	"slices"

	"github.com/a2139e8d/latchkey/internal/overlay"
)

// A defect is one way to break Latchkey on purpose.
type defect struct {
	promise string // the promise that is broken
	what    string // how it is broken
	edits   []overlay.Edit
	suites  []suite // the suites that must find it
}

// A suite is a kind of tests, with the part of it that must find a defect.
type suite struct {
	kind   string
	in     string // the package of the tests
	choice string // a pattern for names of tests, a profile, or what the requests or calls do
	says   string // a part of the failure's report
}

// tests runs the tests of a package. The pattern is a shortcut: if the matching tests find nothing, or if
// none matches, all tests of the package run.
func tests(in, pattern string) suite { return suite{kind: "tests", in: in, choice: pattern} }

// simulation runs package simulation with one of its profiles.
func simulation(profile string) suite {
	return suite{kind: "simulation", in: "internal/simulation", choice: profile}
}

// model runs package model with three requests. says is a part of the violation.
func model(requests, says string) suite {
	return suite{kind: "model", in: "internal/simulation/model", choice: requests, says: says}
}

// users runs package users with up to four calls, in the same way.
func users(calls, says string) suite {
	return suite{kind: "model", in: "internal/simulation/model/users", choice: calls, says: says}
}

// faults runs a test with real processes.
func faults(test string) suite { return suite{kind: "faults", in: "internal/faults", choice: test} }

// kinds are the kinds of suites.
var kinds = []string{"tests", "simulation", "model", "faults"}

func edits(all ...overlay.Edit) []overlay.Edit { return all }

func seenBy(suites ...suite) []suite { return suites }

// catalogue has all defects.
var catalogue = slices.Concat(
	fenceDefects, repetitionDefects, lockDefects, tenureDefects, queueDefects, waitDefects,
	optimisticDefects, setupDefects, sessionDefects, endDefects, timeDefects, userDefects, userListDefects, lateDefects,
	answerDefects, secretDefects, transportDefects, watchDefects, observerDefects, debugDefects, embeddedDefects,
)

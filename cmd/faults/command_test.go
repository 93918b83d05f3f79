package faults

import (
	"slices"
	"strings"

	"github.com/a2139e8d/latchkey/testdata/redistest"
)

// The kinds of commands on their way to Redis.

func isScript(c redistest.Command, keys string) bool {
	return (c.Name == "EVALSHA" || c.Name == "EVAL") && len(c.Args) > 1 && c.Args[1] == keys
}

// isTake reports whether a command takes a session, with the default maximum size.
func isTake(c redistest.Command) bool {
	return isScript(c, "3") && len(c.Args) > 7 && c.Args[7] == "1048576"
}

// isCommit reports whether a command stores a record.
func isCommit(c redistest.Command) bool { return strings.HasPrefix(recordIn(c), `{"v":2,"s":`) }

// recordIn returns the record that a command stores, "" if it is no commit.
func recordIn(c redistest.Command) string {
	if !isScript(c, "3") || len(c.Args) <= 10 {
		return ""
	}
	return c.Args[10]
}

// isExtend reports whether a command extends a lease. No other script has just the record
// and the lock as its keys.
func isExtend(c redistest.Command) bool {
	return isScript(c, "2") && len(c.Args) > 3 && strings.HasSuffix(c.Args[3], ".lock")
}

// byGuest narrows a kind to commands for a guest's write: no visitor goes to /set, which
// is in the token of the lock.
func byGuest(of func(redistest.Command) bool) func(redistest.Command) bool {
	return func(c redistest.Command) bool {
		return of(c) && slices.ContainsFunc(c.Args, func(arg string) bool { return strings.HasSuffix(arg, " POST /set") })
	}
}

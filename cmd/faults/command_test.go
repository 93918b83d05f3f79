package faults

import (
	"slices"
	"strings"

	"github.com/a2139e8d/latchkey/testdata/redistest"
)

// What a command on its way to Redis is.

func isScript(c redistest.Command, keys string) bool {
	return (c.Name == "EVALSHA" || c.Name == "EVAL") && len(c.Args) > 1 && c.Args[1] == keys
}

// isTake: it takes a session, whose largest size is the default.
func isTake(c redistest.Command) bool {
	return isScript(c, "3") && len(c.Args) > 7 && c.Args[7] == "1048576"
}

// isCommit: it stores a record.
func isCommit(c redistest.Command) bool { return strings.HasPrefix(recordIn(c), `{"v":1,"stamp":`) }

// recordIn returns the record that a commit is to store.
func recordIn(c redistest.Command) string {
	if !isScript(c, "3") || len(c.Args) <= 10 {
		return ""
	}
	return c.Args[10]
}

// isExtend: it puts off the end of a lease. Only that concerns the record and the lock.
func isExtend(c redistest.Command) bool {
	return isScript(c, "2") && len(c.Args) > 3 && strings.HasSuffix(c.Args[3], ".lock")
}

// byGuest is of a kind, and for a guest's write: no one else goes to /set, which is in
// the token of the lock.
func byGuest(of func(redistest.Command) bool) func(redistest.Command) bool {
	return func(c redistest.Command) bool {
		return of(c) && slices.ContainsFunc(c.Args, func(arg string) bool { return strings.HasSuffix(arg, " POST /set") })
	}
}

package faults

import (
	"slices"
	"strings"

	"github.com/a2139e8d/latchkey/internal/redistest"
)

// These are the kinds of commands on their way to Redis.

func isScript(c redistest.Command, keys string) bool {
	return (c.Name == "EVALSHA" || c.Name == "EVAL") && len(c.Args) > 1 && c.Args[1] == keys
}

// isTake reports whether a command takes a session: by SET, or by take.lua with the default maximum
// size.
func isTake(c redistest.Command) bool {
	return isLocking(c) || isScript(c, "3") && len(c.Args) > 8 && c.Args[8] == "1048576"
}

// isLocking reports whether a command is the first of a take without a script.
func isLocking(c redistest.Command) bool { return c.Name == "SET" && hasKey(c, ".lock") }

// isLooking reports whether a command is the last of a take without a script.
func isLooking(c redistest.Command) bool { return c.Name == "MGET" && hasKey(c, ".lock") }

// isReading reports whether a command reads a session without its lock.
func isReading(c redistest.Command) bool {
	return (c.Name == "PEXPIRE" || c.Name == "GET") && hasKey(c, "}")
}

// isStaging reports whether a command stages a large record.
func isStaging(c redistest.Command) bool {
	return c.Name == "SET" && len(c.Args) > 0 && isStaged(c.Args[0])
}

// isStaged reports whether a key is that of a staged record.
func isStaged(key string) bool { return strings.Contains(key, "}.new.") }

// isRenaming reports whether a command is the commit of a large record.
func isRenaming(c redistest.Command) bool { return isScript(c, "4") }

// isCommit reports whether a command stores a record.
func isCommit(c redistest.Command) bool { return strings.HasPrefix(recordIn(c), `{"v":2,"s":`) }

// recordIn returns the record that a command stores, or the beginning of the record that it renames; ""
// if it is not a commit.
func recordIn(c redistest.Command) string {
	for _, keys := range []string{"3", "4"} {
		if at := int(keys[0]-'0') + 6; isScript(c, keys) && len(c.Args) > at {
			return c.Args[at]
		}
	}
	return ""
}

// hasKey reports whether the first key of a plain command has a suffix.
func hasKey(c redistest.Command, suffix string) bool {
	return len(c.Args) > 0 && strings.HasSuffix(c.Args[0], suffix)
}

// isExtend reports whether a command extends the lease of a guest's session. No other script has three
// arguments of which the last is a revision.
func isExtend(c redistest.Command) bool {
	return isScript(c, "3") && len(c.Args) == 9 && len(c.Args[8]) == 16
}

// byGuest restricts a kind of commands to those for a guest's write. No visitor uses /set, which is part
// of the token of the lock.
func byGuest(of func(redistest.Command) bool) func(redistest.Command) bool {
	return func(c redistest.Command) bool {
		return of(c) && slices.ContainsFunc(c.Args, func(arg string) bool { return strings.HasSuffix(arg, " POST /set") })
	}
}

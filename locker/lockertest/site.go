package lockertest

import "github.com/a2139e8d/latchkey/locker"

// A Site belongs to one check: the Redis servers of a lock, empty at first. A method that fails ends the
// test.
type Site struct {
	// New returns a process that uses the lock with the given options, except for the options that define its
	// kind.
	New func(o locker.Options) *Process
	// ScriptFlush makes all nodes forget their scripts, as SCRIPT FLUSH does.
	ScriptFlush func()
	// Forget makes a node, counted from 0, forget the lock on key, as if its clock jumped beyond the end of
	// the lease.
	Forget func(node int, key string)
	// Keys returns all keys on a node.
	Keys func(node int) []string
}

// A Process is one of the processes that use a lock. It shares only Redis with the others, over its own
// connections.
type Process struct {
	locker.Locker
	// Break makes the next round trips to a node fail, one in each of the ways.
	Break func(node int, ways ...Fault)
	// Pause holds back the commands of the process until resume is called. The commands that were held back
	// reach Redis when deliver is called, even if the process has given up on them.
	Pause func() (resume, deliver func())
	// Exchanges returns the number of round trips to all nodes. Round trips that failed, or are under way, count.
	Exchanges func() int
}

// A Fault is a way in which a round trip to Redis fails. The process can never tell whether Redis did the
// work.
type Fault int

const (
	// LoseReply: Redis does the work, but the connection breaks before the reply.
	LoseReply Fault = iota + 1
	// CutReply: the connection breaks in the middle of the reply.
	CutReply
	// LoseCommand: the connection breaks before the command reaches Redis.
	LoseCommand
	// Hang: Redis does the work, but no reply ever comes, and the connection
	// stays open.
	Hang
)

var names = map[Fault]string{
	LoseReply: "LoseReply", CutReply: "CutReply", LoseCommand: "LoseCommand", Hang: "Hang",
}

// String returns the fault's name.
func (f Fault) String() string { return names[f] }

package lockertest

import "github.com/a2139e8d/latchkey/locker"

// A Site is what one check has to itself: the Redis servers of a lock, empty at
// first. Functions that fail end the test.
type Site struct {
	// New returns a process that uses the lock with the given options, except
	// for those that make its kind.
	New func(o locker.Options) *Process
	// ScriptFlush makes all nodes forget their scripts, as SCRIPT FLUSH does.
	ScriptFlush func()
	// Forget makes a node, counted from 0, forget all that belongs to the lock on
	// key, as it does when its clock jumps beyond the end of the lease.
	Forget func(node int, key string)
	// Keys returns all keys on a node.
	Keys func(node int) []string
}

// A Process is one of the processes that use a lock. It shares nothing with the
// others but Redis, to which it has a way of its own.
type Process struct {
	locker.Locker
	// Break makes the next exchanges with a node fail, one in each of the ways.
	Break func(node int, ways ...Fault)
	// Pause holds back what the process sends, until resume is called. What was
	// held back until then reaches Redis when deliver is called, whether or not
	// the process has given up on it.
	Pause func() (resume, deliver func())
	// Exchanges returns how many exchanges there have been with all nodes,
	// those that failed and those that are under way included.
	Exchanges func() int
}

// A Fault is a way in which an exchange with Redis fails. In none of them can the
// process tell whether Redis did the work.
type Fault int

const (
	// LoseReply: Redis does the work, but the connection breaks before the reply.
	LoseReply Fault = iota + 1
	// CutReply: it breaks in the middle of the reply.
	CutReply
	// LoseCommand: it breaks before the command reaches Redis.
	LoseCommand
	// Hang: Redis does the work, but no reply ever comes, and the connection
	// stays open.
	Hang
)

var names = map[Fault]string{
	LoseReply: "LoseReply", CutReply: "CutReply", LoseCommand: "LoseCommand", Hang: "Hang",
}

func (f Fault) String() string { return names[f] }

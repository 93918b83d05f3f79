// Package plan draws what happens in a run of the simulation: options, requests and
// faults, each with its time. A Plan is data: the same one gives the same run, and a
// part of one is a plan, too.
package plan

import "time"

// A Plan is all that there is to know about a run.
type Plan struct {
	Seed      uint64
	Profile   string
	Options   Options
	Processes int // that share the sessions
	Visitors  int
	Requests  []Request // in the order of their times
	Faults    []Fault
}

// Options are those of the library, and of the network.
type Options struct {
	Lease, Timeout, LockWait, MaxHold time.Duration
	TTL, Lifetime                     time.Duration
	MaxWaiters, MaxBytes              int
	// A message travels for at least Latency, and at most twice that.
	Latency time.Duration
}

// A What is what a request's handler does.
type What string

// What handlers do. Where it is not said otherwise they append a token first.
const (
	Append      What = "append"
	Look        What = "look" // changes nothing
	Panic       What = "panic"
	Unencodable What = "unencodable" // sets a value that JSON cannot hold
	TooLarge    What = "too large"
	Early       What = "early"     // commits, and goes on with its work
	Late        What = "late"      // the same, and then appends again
	Crumble     What = "crumble"   // commits, and panics
	Flush       What = "flush"     // sends a part of the answer, and goes on
	Elsewhere   What = "elsewhere" // commits in another goroutine
	Renew       What = "renew"
	Destroy     What = "destroy"
	Clear       What = "clear"          // removes everything, and then appends
	Reopen      What = "reopen"         // looks, commits, works, reopens, and appends to what it sees then
	Discard     What = "discard"        // changes everything, discards that, and then appends
	Update      What = "update"         // no request: a job of the process, by Sessions.Update
	Login       What = "login"          // the session is a user's from now on
	EndOthers   What = "end the others" // ends the other sessions of its user, at times also its own, and appends
	// No requests, and no session is opened:
	End       What = "end"             // ends the visitor's session
	EndAll    What = "end all"         // ends those of a user
	EndAllBut What = "end all but one" // but that of the visitor
)

// Opens reports whether it opens a session, in a request or a job.
func (w What) Opens() bool { return w != End && w != EndAll && w != EndAllBut }

// A Mode is how the session is opened.
type Mode string

// The modes of package middleware, and two ways to call session.Start.
const (
	Exclusive     Mode = "exclusive"
	ReadOnly      Mode = "read-only"
	Optimistic    Mode = "optimistic"
	Lazy          Mode = "lazy"
	LazyElsewhere Mode = "lazy elsewhere" // started in another goroutine
)

// A Request is sent by a visitor's browser to a process.
type Request struct {
	Number   int // names it, and is the token that it appends; not 0
	At       time.Duration
	Visitor  int
	Process  int
	What     What
	Mode     Mode
	Before   time.Duration // how long the handler works before it appends
	After    time.Duration // and afterwards
	Leave    time.Duration // after which the client goes away; 0: it stays
	Deadline bool          // it has said so in advance, by a deadline
	Heeds    bool          // the handler's work ends with its context
	User     int           // of Login, EndAll and EndAllBut
	Large    bool          // what it writes makes the session large; else it is small again
}

// A Kind is one of fault.
type Kind string

// The faults. Those with a time For last that long; Share of the messages are hit, or of the calls.
const (
	Cut            Kind = "connections are cut"             // before or after a command was done
	CutLate        Kind = "cut, and what was sent is late"  // reset for the client, still under way to Redis
	Slow           Kind = "messages are late"               // and those behind them
	DoubleCommands Kind = "commands arrive twice"           // the copy later
	DoubleReplies  Kind = "replies arrive twice"            //
	Swap           Kind = "replies change places"           // two, on one connection
	Panics         Kind = "the Redis client panics"         // before or after what it does
	Unsubscribe    Kind = "subscriptions are cut"           //
	Mute           Kind = "published messages are lost"     //
	HalfOpen       Kind = "open connections fall silent"    // for good
	Crash          Kind = "a process crashes"               // and is there again after For
	Partition      Kind = "a process is cut off"            //
	Pause          Kind = "Redis is silent"                 //
	RestartKeep    Kind = "Redis restarts with its data"    //
	RestartLose    Kind = "Redis restarts without its data" //
	Full           Kind = "Redis is out of memory"          //
	Loading        Kind = "Redis is loading"                //
	Replica        Kind = "Redis is a replica"              //
	Busy           Kind = "Redis is busy"                   //
	NoPerm         Kind = "Redis permits nothing"           //
	NoChannels     Kind = "Redis permits no channels"       //
	DropLocks      Kind = "all locks are deleted"           //
	DropQueues     Kind = "all queues are deleted"          //
	DropRecord     Kind = "a visitor's record is deleted"   //
	DropMarks      Kind = "the marks of users are deleted"  //
	DropLists      Kind = "the lists of users are deleted"  //
	FlushScripts   Kind = "SCRIPT FLUSH"                    //
)

// A Fault happens at a time, or during one.
type Fault struct {
	Kind    Kind
	At, For time.Duration
	Process int           // Everyone: all
	Visitor int           // of DropRecord
	Share   float64       // of the messages that are hit
	Delay   time.Duration // the longest
}

// Everyone as Fault.Process means all processes.
const Everyone = -1

// Until is when a fault is over.
func (f Fault) Until() time.Duration { return f.At + f.For }

// Hits tells whether the fault lasts at a time, for a process.
func (f Fault) Hits(process int, at time.Duration) bool {
	return f.At <= at && at < f.Until() && (f.Process == Everyone || f.Process == process)
}

// Any reports whether a plan has a fault of one of these kinds.
func (p *Plan) Any(kinds ...Kind) bool {
	for _, f := range p.Faults {
		for _, k := range kinds {
			if f.Kind == k {
				return true
			}
		}
	}
	return false
}

// Strict reports whether nothing goes wrong but what the requests do.
func (p *Plan) Strict() bool { return len(p.Faults) == 0 }

// Healed is when all faults are over.
func (p *Plan) Healed() (end time.Duration) {
	for _, f := range p.Faults {
		end = max(end, f.Until())
	}
	return end
}

// Lateness is the longest that a message travels.
func (p *Plan) Lateness() time.Duration {
	longest := time.Duration(0)
	for _, f := range p.Faults {
		switch f.Kind {
		case Partition, Pause:
			longest += f.For
		}
		longest = max(longest, f.Delay)
	}
	return longest + 2*p.Options.Latency
}

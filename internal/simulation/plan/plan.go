// Package plan draws what happens in a run of the simulation: options, requests and faults, each with its
// time. A Plan is data: the same plan gives the same run, and a part of a plan is a plan, too.
package plan

import "time"

// A Plan determines a run.
type Plan struct {
	Seed      uint64
	Profile   string
	Options   Options
	Processes int // that share the sessions
	Visitors  int
	Requests  []Request // in the order of their times
	Faults    []Fault
	Observer  Manner // of one observer
}

// Options are the options of the library and of the network.
type Options struct {
	Lease, Timeout, LockWait, MaxHold time.Duration
	TTL, Lifetime                     time.Duration
	MaxWaiters, MaxBytes              int
	MaxSessions                       int // of a user; 0: the default
	RefuseLogin                       bool
	// A message travels for at least Latency, and at most twice that.
	Latency time.Duration
}

// An Action is what a request's handler does.
type Action string

// The actions of handlers. Unless the comment says otherwise, a handler first appends a token.
const (
	Append      Action = "append"
	Look        Action = "look" // changes nothing
	Panic       Action = "panic"
	Unencodable Action = "unencodable" // sets a value that JSON cannot hold
	TooLarge    Action = "too large"
	Early       Action = "early"     // commits, and goes on with its work
	Late        Action = "late"      // the same, and then appends again
	Crumble     Action = "crumble"   // commits, and panics
	Flush       Action = "flush"     // sends a part of the response, and goes on
	Elsewhere   Action = "elsewhere" // commits in another goroutine
	Renew       Action = "renew"
	Destroy     Action = "destroy"
	Clear       Action = "clear"          // removes everything, and then appends
	Reopen      Action = "reopen"         // looks, commits, works, reopens, and appends to what it then sees
	Discard     Action = "discard"        // changes everything, discards the changes, and then appends
	Update      Action = "update"         // no request: a job of the process, by Sessions.Update
	Login       Action = "login"          // makes the session a user's
	EndOthers   Action = "end the others" // ends the other sessions of its user, sometimes also its own, and appends
	// These are no requests, and open no session:
	End       Action = "end"             // ends the visitor's session
	EndAll    Action = "end all"         // ends all sessions of a user
	EndAllBut Action = "end all but one" // except that of the visitor
)

// Opens reports whether the action opens a session, in a request or a job.
func (w Action) Opens() bool { return w != End && w != EndAll && w != EndAllBut }

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
	Action   Action
	Mode     Mode
	Before   time.Duration // how long the handler works before it appends
	After    time.Duration // and how long afterwards
	Leave    time.Duration // when the client goes away; 0: it stays
	Deadline bool          // Leave is a deadline that the client has set in advance
	Heeds    bool          // the handler's work ends with its context
	User     int           // for Login, EndAll and EndAllBut
	Large    bool          // it makes the session large; otherwise small again
}

// A Kind is a kind of fault.
type Kind string

// The kinds of faults. A fault with a time For lasts that long. Share is the share of messages, or of
// calls, that it hits.
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
	NoPerm         Kind = "Redis refuses a command"         //
	NoChannels     Kind = "Redis permits no channels"       //
	DropLocks      Kind = "all locks are deleted"           //
	DropQueues     Kind = "all queues are deleted"          //
	DropRecord     Kind = "a visitor's record is deleted"   //
	DropMarks      Kind = "the marks of users are deleted"  //
	DropLists      Kind = "the lists of users are deleted"  //
	FlushScripts   Kind = "SCRIPT FLUSH"                    //
)

// A Fault happens at a time, or during a time.
type Fault struct {
	Kind    Kind
	At, For time.Duration
	Process int           // Everyone: all
	Visitor int           // for DropRecord; NoPerm chooses by it what Redis does not permit
	Share   float64       // of the messages that are hit
	Delay   time.Duration // the longest
}

// Everyone as Fault.Process means all processes.
const Everyone = -1

// Until is the end of a fault.
func (f Fault) Until() time.Duration { return f.At + f.For }

// Hits reports whether the fault lasts at a time, for a process.
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

// Strict reports whether there are no faults.
func (p *Plan) Strict() bool { return len(p.Faults) == 0 }

// Healed is when all faults have ended.
func (p *Plan) Healed() (end time.Duration) {
	for _, f := range p.Faults {
		end = max(end, f.Until())
	}
	return end
}

// Lateness is the longest time that a message travels.
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

// Package history judges what clients have seen of Latchkey. It knows requests, times and responses, but
// not how they came about.
//
// # What is recorded
//
// Every session holds a list of numbers. A request that writes appends its own number, which no other
// request has, to the list that it saw. So a list is the history of its session, and its last number names
// a version: all requests that see the same last number must have seen the same list, and two versions
// built on the same version are a lost update. If a handler empties the session first, the list begins
// anew, but the record of the request has the list that the handler saw.
//
// A request's outcome is [Answered], [Refused] or [Unknown]. Unknown means that the client cannot tell
// whether the request took effect, because the process crashed, or Redis did not reply to the commit. A
// version is effective if its request was answered, or if another answered request has seen it.
//
// A handler with two steps counts as two requests. If it commits and reopens its session, the first
// request looked, and the second one asked when the session was reopened. If it runs twice, the first
// request was an optimistic one that was refused, of which nothing may ever be seen; the second has the
// lock, and asked when the first was about to be saved. A job of the application is a request, too, but it
// does not count as use of the session.
//
// # What is demanded
//
//   - Order (order.go): what a request sees was written by a request that was not refused, in the same
//     session. The effective versions of a session are a chain.
//   - Real time (realtime.go): a request that asks after the response to another one sees at least what
//     that one saw or wrote. This includes read-your-writes, monotonic reads and monotonic writes, for all
//     clients together.
//   - The end (end.go): an ID that has ended, by a logout or by a new ID, shows no request anything any
//     more. All writes with a response before the end are part of the last version. A session is empty
//     only if it was ended, has expired, or Redis lost it.
//   - Guests and members (cookies.go): a login, a Renew and a logout set or delete both cookies. Any other
//     response leaves the member's cookie alone.
//   - Moved IDs (moved.go): a request with an ID that has ended is not refused. The exception is a request that
//     crosses a login or a Renew: it comes with an ID that this has moved less than a minute ago. Such a request
//     is refused if it writes, unless it is a login or a navigation.
//   - Successors (successor.go): a logout with a member's ID that was moved ends the session that it has become.
//     A login does, too, if that is another user's.
//   - Unclaimed sessions (unclaimed.go): a user's session is claimed when a request first opens it. A job does not
//     claim it. A login that comes with a moved ID replaces the unclaimed session of its user that the ID has become.
//     The replaced session ends when the newer one is claimed, and not before. A session that was claimed first lives.
//   - MaxSessions (crowd.go): behind a login, no more sessions of its user are left. Only those count that somebody
//     has come back with. The login ends the one that would expire first. With RefuseLogin it ends none and is refused,
//     but not without a reason. An unclaimed session gives way to any login of its user then.
//   - Carts (cart.go): every write puts its number into the session's cart, except a login and a Renew. So the cart is
//     that of the last such write. A login without a cart gets that of the session that it has taken over, and no
//     other cart.
//   - Endings (ending.go): once End or EndAll has its response, the sessions that had begun before it have
//     ended: no later request sees them alive, no holder saves anything, and no new ID that one of them
//     gets stays alive. All other sessions stay. An ending takes effect once, so it ends nothing that
//     begins after its response, however late its messages come. Without a response an ending may take
//     effect later; an EndAll only within the time of a few round trips. A new ID of the spared session
//     may be ended, since it was not known. A login that had arrived before an EndAll of its user began is
//     ended by it, or refused. A login that arrived after the response is neither. A process may lend a
//     session without a user once more after its end, to a request that is then refused.
//   - Timeouts (idle.go): a session that was used in time exists, and one that was not is gone.
//   - Waiting (bounds.go): every response comes within its bound. Without faults, each refusal and each
//     second run has a reason. A request that takes no lock does not wait.
//   - Exclusion and turns (turns.go, gaps.go), without faults: handlers hold a session one at a time, first
//     come, first served. Meanwhile nothing is saved without the lock. Processes take turns. No request
//     waits for a session that no other request has.
package history

import (
	"strings"
	"time"
)

// An Effect is what a request does to the session.
type Effect int

// The effects.
const (
	Nothing Effect = iota
	Write          // stores Wrote
	Renew          // stores Wrote under a new ID
	Destroy
)

// An Outcome is what the client knows about a request's effect.
type Outcome int

// The outcomes.
const (
	Unknown Outcome = iota
	Answered
	Refused // it has no effect
)

// A Cause is why a request was refused or failed.
type Cause string

// The causes.
const (
	None        Cause = ""
	Timeout     Cause = "it waited for too long"
	TooMany     Cause = "too many wait"
	Lost        Cause = "the lock was lost"
	Unavailable Cause = "Redis is unavailable"
	Gone        Cause = "the session was ended"
	Conflict    Cause = "another has changed the session"
	Cancelled   Cause = "the client went away"
	Mistake     Cause = "a mistake of the handler"
	Panicked    Cause = "the handler panicked"
	Broken      Cause = "a script failed"
	Crowded     Cause = "the user has too many sessions"
	Crashed     Cause = "the process crashed"
)

// A Request is what its client and its handler know of it. Times count from the beginning of the run; 0
// means never.
type Request struct {
	Number  int
	Process int
	Life    int    // how often the process had crashed before
	Title   string // for people
	Member  string // the ID of the member's cookie that it came with; "": none, or it is a job
	Guest   string // the ID of the guest's
	Cookie  string // the ID of the session that it asked for last: the guest's only if it did not find the member's

	Began time.Duration // when the client sent it
	Asked time.Duration // when the session was asked for
	Open  time.Duration // when the handler got the session

	Exclusive  bool   // it opens the session under its lock
	Optimistic bool   // it opens the session without the lock, and saves its changes without it, or under the lock from Seal on
	Again      bool   // its handler has run before, without the lock: Asked is when that run's commit began
	Quiet      bool   // it does not come from the session's visitor, and extends no timeout
	New        bool   // the session was empty
	ID         string // of the session, as the handler saw it
	User       string // the session's user
	Saw        []int
	Cart       int // what it found there; 0: nothing

	Effect Effect
	Wrote  []int
	Puts   int    // the cart that it leaves
	LogsIn string // the user that its handler logs in
	Renews bool   // its handler calls Login or Renew
	// Destroys: its handler calls Destroy.
	Destroys bool

	Blocked time.Duration // for how long an observer has blocked it, which costs no other request
	// GaveBack is how long it took to give back locks that were passed on to it, with a lease that was too short by then.
	GaveBack time.Duration

	Seal    time.Duration // when the commit began
	Leaves  time.Duration // when the client goes away
	Outcome Outcome
	End     time.Duration // when it got its response; by then its commit had succeeded or failed
	Done    time.Duration // when the process had finished it
	// Durable is when a commit by the handler had succeeded, and Answered when the header of the response was complete,
	// even if no client has got it; for the judge of what observers are told.
	Durable, Answered time.Duration
	Status            int // of the response; 0: there was none
	Cause             Cause
	Why               string // for people
	Faulty            bool   // its handler makes a mistake: 500 is the right status
	Anew              bool   // if it finds no session, it may begin one
	// Navigates: the browser goes to another page.
	Navigates bool

	SetID   string // the ID of the session that the response's cookie opens; "": no cookie
	SetUser string // the user of that session
	// What the response does to the cookies.
	MembersCookie, GuestsCookie Fate

	tookTurn bool // the copy of an exclusive request, see history.miss: it had the lock to find nothing
}

// A Fate is what a response does to a cookie.
type Fate int

// The fates.
const (
	Left Fate = iota
	Set
	Deleted
)

// waited returns the time in which a request may have waited for the lock of its session.
func (r *Request) waited() (from, to time.Duration) {
	if r.Optimistic && r.Seal > 0 {
		return r.Seal, r.End
	}
	return r.Asked, r.waits()
}

// gone reports whether the handler did not find the client's session.
func (r *Request) gone() bool { return r.Open > 0 && r.New && r.Cookie != "" }

// missed returns the ID of the member's session that a request has not found, or "".
func (r *Request) missed() string {
	if r.Member == r.Cookie && !r.gone() {
		return ""
	}
	return r.Member
}

// late reports whether a request may have asked for its session later than at Asked, since it had to ask for the
// member's session first. An optimistic one that is not saved counts, too: the second run of its handler may have
// waited for the guest's session.
func (r *Request) late() bool {
	return r.Member != "" && r.Guest != "" && (r.Open == 0 || r.Cookie == r.Guest || r.Optimistic && r.Outcome != Answered)
}

// asksWith reports whether two requests may have asked for the same session: a member's that was not found leads to the
// guest's.
func (r *Request) asksWith(x *Request) bool {
	same := func(a, b string) bool { return a != "" && a == b }
	return same(r.Cookie, x.Cookie) || same(r.Guest, x.Guest) || same(r.Member, x.Member)
}

// last returns the number that names a version, or 0 if there is none.
func last(list []int) int {
	if len(list) == 0 {
		return 0
	}
	return list[len(list)-1]
}

// A Loss is a loss of data by Redis: of a session, of those of all users, or of all sessions if ID is
// empty.
type Loss struct {
	ID    string
	Users bool
	At    time.Duration
}

// forgotten reports whether Redis may have lost a user's mark between two moments. The mark remembers
// when all of the user's sessions were ended.
func (t *Terms) forgotten(from, to time.Duration) bool {
	for _, l := range t.Losses {
		if l.ID == "" && from <= l.At && l.At <= to {
			return true
		}
	}
	return false
}

// Terms are the settings of a run, by which the requests are judged.
type Terms struct {
	TTL, Lifetime     time.Duration
	Lease             time.Duration
	LockWait, MaxHold time.Duration
	Timeout           time.Duration
	MaxWaiters        int
	MaxSessions       int // of a user; 0: any number
	RefuseLogin       bool
	Lateness          time.Duration // the longest time that a message may travel
	Latency           time.Duration // the longest time that it travels without a fault
	Strict            bool          // there are no faults: promises that hold only without faults are judged, too
	Exclusion         bool          // leases are long enough for handlers to exclude each other
	Gap               time.Duration // the longest wait while no other request has the session; 0: it is not judged
	Turns             bool          // each process has a waiter all the time
	Processes         int
	Losses            []Loss
	Endings           []Ending
	// Swaps: replies on one connection may change places. Then two reads of one session without its lock, which
	// are under way at the same time in one process, may get each other's record.
	Swaps bool
}

// lost reports whether a session may have been lost between two moments.
func (t *Terms) lost(id string, from, to time.Duration) bool {
	for _, l := range t.Losses {
		if (l.ID == "" && (!l.Users || strings.Contains(id, ".")) || l.ID == id && id != "") && from <= l.At && l.At <= to {
			return true
		}
	}
	return false
}

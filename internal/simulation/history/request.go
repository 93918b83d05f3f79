// Package history judges what clients have seen of Latchkey. It knows requests, times
// and answers, and nothing of how they came about.
//
// # What is recorded
//
// Every session holds a list of numbers. A request that writes appends its own number,
// which no other has, to the list that it saw. So a list is the history of its session,
// and its last number names a version: all who see that number last must have seen the
// same list, and two versions that were built on the same one are a lost update. Where
// a handler empties the session first, the list begins anew, but it is known what that
// handler saw.
//
// A request's outcome is [Answered], [Refused] or [Unknown]: the last if the client
// cannot tell whether it took effect, since the process crashed, or Redis did not
// answer the commit. A version is effective if it was answered, or if somebody whose
// request was answered has seen it.
//
// What a handler does in two steps is two requests. One that commits and reopens its session is
// a first one that looked, and a second one that asked when it reopened. One that runs twice is an
// optimistic one that was refused, of which nothing may ever be seen, and a second one that has the
// lock and asked when the first one was to be saved. A job of the application is a request, too, but
// no use of the session.
//
// # What is demanded
//
//   - Order (order.go): what is seen was written so, by a request that was not refused,
//     in the session that was asked for; and the effective versions of a session are a
//     chain.
//   - Real time (realtime.go): whoever asks after an answer sees at least what that
//     request saw or wrote. This is read-your-writes, monotonic reads and writes, and
//     more: it goes for all clients together.
//   - The end (end.go): an id that was ended, by a logout or by a new id, shows nothing
//     any more, to nobody; what was answered before is in it; and a session is empty
//     only if it was ended, ran out, or Redis lost it. Who still comes with such an id gets
//     no cookie, unless it is a login or a navigation, which is not refused either.
//   - Endings (ending.go): when End or EndAll was answered, what had begun before it began is
//     over: nobody who asks later sees it alive, no holder saves anything, and no new id
//     that it is given goes on. All others stay: it is done once, so nothing that begins after
//     its answer is ended, however late its messages come. Without an answer it may be done later,
//     EndAll for the time of a few exchanges; and a new
//     id of the one that is spared may be ended, since nobody knew it. A login that had
//     arrived before an EndAll of its user began is ended by that, or refused; one that arrived
//     after it was answered is neither. A process
//     may lend a session that is no user's once more to one that comes after its end, who is
//     refused.
//   - Time-outs (idle.go): a session that was used in time is there, and one that was
//     not is gone.
//   - Waiting (bounds.go): every answer comes within its bound, and without faults each
//     refusal has a reason; so has each second run. Who takes no lock waits for nobody.
//   - Exclusion and turns (turns.go, gaps.go), without faults: handlers hold a session one
//     at a time, in the order in which they came, nothing is saved without the lock meanwhile,
//     processes take turns, and nobody waits for what nobody has.
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
	Renew          // the same, under a new id
	Destroy
)

// An Outcome is what the client knows about a request's effect.
type Outcome int

// The outcomes.
const (
	Unknown Outcome = iota
	Answered
	Refused // it has none
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
	Crashed     Cause = "the process crashed"
)

// A Request is what is known of one, by its client and by its handler. Times are from
// the beginning of the run; 0 means never.
type Request struct {
	Number  int
	Process int
	Life    int    // how often that had crashed before
	Title   string // for people
	Cookie  string // the id of the session that the client asked for; "": none

	Began time.Duration // the client sent it
	Asked time.Duration // the session was asked for
	Open  time.Duration // the handler got it

	Exclusive  bool   // it is opened under its lock
	Optimistic bool   // it is not, and what is written is saved without, or under the lock from Seal on
	Again      bool   // its handler has run before, without the lock: Asked is when that run's commit began
	Quiet      bool   // it is not of the session's visitor, and puts no time-out off
	New        bool   // it was empty
	ID         string // of the session, as the handler saw it
	User       string // whose it is
	Saw        []int

	Effect  Effect
	Wrote   []int
	Seal    time.Duration // the commit began
	Leaves  time.Duration // when the client goes away
	Outcome Outcome
	End     time.Duration // it was answered, or refused; its commit had succeeded by then
	Done    time.Duration // the process was through with it
	Status  int           // of the answer; 0: there was none
	Cause   Cause
	Why     string // for people
	Faulty  bool   // its handler makes a mistake: 500 is the right answer
	Anew    bool   // it is a login or a navigation: where its session has ended, it begins another
	LogsIn  string // the user that it logs in
	SetID   string // the id of the session that the answer's cookie opens; "": no cookie
	SetUser string // whose that session is
}

// waited returns from when until when a request may have waited for the lock of its session.
func (r *Request) waited() (from, to time.Duration) {
	if r.Optimistic && r.Seal > 0 {
		return r.Seal, r.End
	}
	return r.Asked, r.waits()
}

// gone tells whether the client's session was not there for the handler.
func (r *Request) gone() bool { return r.Open > 0 && r.New && r.Cookie != "" }

// last returns the number that names a version; 0: none.
func last(list []int) int {
	if len(list) == 0 {
		return 0
	}
	return list[len(list)-1]
}

// A Loss is Redis's own: the data of a session, of those of all users, or of all of them if ID is
// empty, was deleted.
type Loss struct {
	ID    string
	Users bool
	At    time.Duration
}

// forgotten tells whether Redis may have lost between two moments what it knew of a user: the mark
// remembers when all of their sessions were ended.
func (t *Terms) forgotten(from, to time.Duration) bool {
	for _, l := range t.Losses {
		if l.ID == "" && from <= l.At && l.At <= to {
			return true
		}
	}
	return false
}

// Terms are what the requests were to keep to.
type Terms struct {
	TTL, Lifetime     time.Duration
	Lease             time.Duration
	LockWait, MaxHold time.Duration
	Timeout           time.Duration
	MaxWaiters        int
	Lateness          time.Duration // the longest that a message may travel
	Latency           time.Duration // the longest that it travels without a fault
	Strict            bool          // there are no faults: what is promised without is judged, too
	Exclusion         bool          // leases are long enough for handlers to exclude each other
	Gap               time.Duration // nobody waits for longer for what nobody has; 0: that is not judged
	Turns             bool          // each process has had somebody who waits, all the time
	Processes         int
	Losses            []Loss
	Endings           []Ending
}

// lost tells whether a session may have been lost between two moments.
func (t *Terms) lost(id string, from, to time.Duration) bool {
	for _, l := range t.Losses {
		if (l.ID == "" && (!l.Users || strings.Contains(id, ".")) || l.ID == id && id != "") && from <= l.At && l.At <= to {
			return true
		}
	}
	return false
}

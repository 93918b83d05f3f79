package middleware

import (
	"context"
	"slices"
	"time"
)

// An Observer receives events of what the sessions do: for metrics, traces, or a log of your own. Module
// middleware/otel has one for OpenTelemetry.
//
//	func (slow) Observe(ctx context.Context, e middleware.Event) {
//		if e, ok := e.(*middleware.RequestEvent); ok && e.Behind != "" && e.Waited > time.Second {
//			log.Printf("%s waited %v behind %s", e.Label, e.Waited, e.Behind)
//		}
//	}
//
// Each event is reported once, also to an observer that is twice in the slice, unless that observer cannot be compared.
// Observe is called by several goroutines at once.
//
// The events of a request are reported in order, in the goroutine of the request, after its session is released. No mutex
// is held then. So a slow observer delays only the request itself, and the observers behind it in the slice. But an Update
// in a handler reports its events while that handler's session is held, and so do Sessions inside other Sessions: then a
// slow observer also delays who waits for the outer session. If a handler commits in another goroutine, that goroutine
// reports the events so far, and may do so after the RequestEvent.
//
// All other events are reported in order by one goroutine for each observer. Most of them belong to no request, such as
// a lease that is extended. Five kinds belong to a request:
//
//   - a lost lock, unless the request's own commit finds the loss
//   - what happens before a commit, if that makes more than 1,024 events
//   - what happens after a commit in the middle of the handler
//   - what a handler in mode None does with the Sessions
//   - what happens in a goroutine that outlives the request
//
// But an ended_open is always reported by the request itself.
//
// If an observer blocks for so long that 65,536 of these events wait, further ones are dropped and counted in the log.
//
// If an observer panics, the panic is logged, and nothing else happens. If an observer calls runtime.Goexit in the goroutine
// of the request, the response is cut off. If the handler had returned by then, its session is saved. After a panic or a
// Goexit the other observers get every event. An observer may use the Sessions, and gets the events of that use, too.
//
// What belongs to no request is reported to the observers of all Sessions of the store. So give Sessions that share a
// store the same observers, and let an observer be a pointer: one that cannot be compared, such as a func, counts as
// another observer for each Sessions. If one of these Sessions is inside another, the observers of the inner one also get
// what the handler does with the outer one.
//
// An event must not be changed. When Observe returns, its memory may be used for another request: to keep an event, keep
// its Clone. The context may be kept.
//
// The fields named Err are errors, whose text package encoding/json does not write, nor a slog.JSONHandler for a whole event:
// write Err.Error() yourself.
//
// Events have public IDs and labels, but no user, no path, no value and no secret. Do not put an ID into the attributes of
// a metric: there are too many of them.
//
// An observer that also has a method Attach(*Sessions) is given the Sessions by New, for gauges that ask
// [Sessions.Requests].
type Observer interface {
	// Observe gets a *RequestEvent, an *ExchangeEvent or a *SessionEvent. Later versions may have further events, and
	// further fields in these. ctx has the values of the request's context as it came in, such as the current span, and
	// does not end with the request. For an Update, ctx has the values of the context that it was given. The
	// same holds for other methods of Sessions that are called outside a request. All other events that belong to no request
	// have a ctx without values.
	Observe(ctx context.Context, e Event)
}

// An Event is a [*RequestEvent], an [*ExchangeEvent] or a [*SessionEvent].
type Event interface {
	// Clone returns a copy that may be kept and changed.
	Clone() Event
	isEvent()
}

// A RequestEvent tells how a request has used its session. It is reported when the request is done: after its handler
// has returned and the session is saved. A request has an event if it came with a session's cookie, or with one that
// was refused, if it has stored a session, or if its session has failed. In mode Lazy, a request that has not called
// Start has none, and a request in mode None never has one.
//
// An Update has a RequestEvent, too: its Label is "Update", and it has no Method and no Route. An Update that fails before
// it asks for the lock has none: its ID is malformed, or its own handler holds the session.
type RequestEvent struct {
	// Session is the public ID of the request's session, as the request knew it in the end. If another request has
	// given the session a new ID meanwhile, as during a stream, it is the old one. It is empty if there was no session.
	// But if the session could not be opened or saved, as at a login, it may be an ID under which nothing is stored: the one
	// that Session.ID returns.
	Session string
	// Label is what waiters are told of the request, see Options.Label. If the request has not asked for the lock, it is the
	// method and the route. Clients may make up the Method: it is cut short after 16 bytes, and is _OTHER if it is no word.
	// Route is the pattern that the router has matched, without the method, or empty. It is empty for a CONNECT, of which a
	// ServeMux may name the path.
	Label, Method, Route string
	Mode                 Mode
	Passive              bool // see Sessions.Passive

	// A time is zero if what it stands for has not happened. If a request begins its session, commits it and opens it
	// again, Acquired is after the first commit. Acquired is the time of the session, and Hold.Acquired that of the
	// lock: a request may get the lock and then fail to open the session.
	Arrived   time.Time // the request came in
	Acquired  time.Time // it had first opened its stored session: with the lock, unless its mode does without
	Committed time.Time // its last commit had succeeded, if only by finding nothing to store
	Done      time.Time // the handler had returned, and the session was saved
	// Waited is how long the request has waited for the lock, and Held how long it has had the lock, until its commit
	// was stored. Both contain their round trips to Redis. A request that opens its session again adds to both. Held goes
	// on after the lock is lost, and after the session is passed on, until the commit: so the holds of a busy session
	// overlap.
	Waited, Held time.Duration
	// Queue is how many requests of this process were waiting for the session when this one first asked for the lock. The
	// holder is not one of them. A request that is acquiring the lock is.
	Queue int
	// Behind is the label of the request that held the session then. BehindProcess is the host and process ID of that
	// request if it is in another process. If no request held the session, Behind is the label of the request of this
	// process that was acquiring it, or empty. The other requests that Queue counts had the session in between.
	Behind, BehindProcess string
	// Passed: the request before it in line has passed the session on, without a round trip.
	Passed bool
	// Holds has an entry for each time that the request has asked for the lock: none if it needed no lock, as in mode
	// ReadOnly or if it begins its session, and more than one if it has opened its session again, or tried in vain. After
	// 64 times, Holds has the first 63 and the last. Queue and Behind above are those of the first.
	Holds []Hold

	// Runs is how often the handler ran: 2 if another request has changed the session during an Optimistic run, and 0 if
	// the session could not be opened before the handler.
	Runs int
	// RoundTrips is how many round trips to Redis the request has made: how many ExchangeEvents it has. A commit may also
	// store the changes of other requests, which then need none.
	RoundTrips int
	// Bytes is the size of the session's record as the request has last read or stored it.
	Bytes int

	// Began, Renewed, LoggedIn and Ended: the request has begun its session, given it a new ID, logged a user in, or
	// ended it by Destroy. There is a SessionEvent of each, and another if Destroy has also ended the session that an old
	// ID leads to.
	Began, Renewed, LoggedIn, Ended bool
	// Outcome is what became of the session in the last commit. It does not say how the response ended: a handler may panic
	// after its commit.
	//
	//	unchanged   it was only read
	//	touched     it was locked, not changed, and its idle timeout extended, unless a SessionEvent says that the lock was lost.
	//	            An Update and a Passive request do not extend it
	//	saved       its record was stored
	//	began       its first record was stored
	//	renewed     it was stored with a new ID
	//	ended       the handler has called Destroy, or Remember(0) for a login that is older than Lifetime: Ended says whether that has ended a session
	//	failed      it could not be opened or saved, or a change came too late to be saved: see Err. If Committed is set,
	//	            that commit was stored
	//	abandoned   the handler panicked, or the function of an Update has failed, so that nothing was saved since
	//	            the last commit. If Committed is set, that commit was stored
	Outcome string
	// Err is the error with which the session's part of the request has failed, and Kind is its kind in the log, such as
	// "timeout" or "unavailable". See [Status] for the status of the response. If the request has gone on after the
	// error, for example by another Reopen, Outcome says what became of the session.
	Err  error
	Kind string

	// UnknownKey, Refused and Dead count the cookies or tokens that opened no session: those that none of Options.Keys
	// has signed, those that are too old or not made by a Sessions, and those of sessions that have ended or expired. An
	// old ID that leads to a session's new one is not counted.
	UnknownKey, Refused, Dead int
}

// A Hold is one time that a request has asked for the lock of its session.
type Hold struct {
	Asked    time.Time // when it asked for the lock
	Acquired time.Time // when it got the lock; zero if it asked in vain
	Released time.Time // when its commit was stored, which may be after it had passed the session on; or it gave up
	// Kind is why it asked in vain, as in RequestEvent.Kind: "not_found" or "gone" if the session has ended or has another ID.
	// Then the request may have gone on without it.
	Kind string
	// Queue, Behind and BehindProcess are as in RequestEvent, when it asked.
	Queue                 int
	Behind, BehindProcess string
}

// An ExchangeEvent tells of one round trip to Redis: commands that were sent together, and their replies. If a
// connection breaks, or Redis defers a command, another exchange follows, perhaps with other commands. If Redis does not
// know a script, EVAL after EVALSHA is another exchange. A try for which there is no connection is an exchange, too.
type ExchangeEvent struct {
	// Script is the name of the Lua script that was run, as in the repository's .lua files, or empty.
	Script string
	// Command is the name of the first command, which is EVALSHA or EVAL for a script alone, and Commands is their
	// number.
	Command  string
	Commands int
	// Node is the address of the server that was asked, and Database the number of its database, as far as the client
	// knows them.
	Node, Database string
	// Moved and Asked are how often another node of a cluster was asked, because the slot had moved there, or was being moved.
	// The client of rueidisstore follows these redirects by itself, and does not report them.
	Moved, Asked int
	// Holds is how many holds a commit ends: how many requests have held the session since the last commit. A commit that is
	// tried again has another exchange with the same Holds. So count only those without Err and Status. If the lock was
	// lost or the session has ended meanwhile, nothing is stored: the RequestEvents say so.
	Holds int
	// Sent and Received are the sizes of arguments and replies in bytes. Sent is 0 if the commands were certainly not sent.
	Sent, Received int
	Began          time.Time
	Took           time.Duration
	// Status is the first word of Redis's first error reply, such as OOM or NOPERM, or ERR if that is no kind of error. It is
	// empty if there is no error reply. If Redis has refused the connection by such a reply, such as WRONGPASS, Err is set
	// as well.
	Status string
	// Err is why there are no replies, or nil.
	Err error
}

// A SessionEvent tells what has happened to a session. Those of a request are reported before its RequestEvent, except
// as said at [Observer].
//
//	What        How
//	began                     its first record was stored, a guest's
//	            login         its first record was stored, a user's
//	renewed     renew         it has a new ID
//	            login         it has a new ID, and belongs to a user, perhaps to a different one than before
//	ended       destroy       by Session.Destroy, or by Remember(0) of a login that is older than Lifetime
//	            end           by Sessions.End
//	            end_all       by Sessions.EndAll
//	            max_sessions  a login has ended it, because of Options.MaxSessions
//	            gave_way      a newer login has replaced it, since nobody had come back with it. The first request that comes
//	                          with the newer login reports it
//	            other_user    a request came with an old ID of a user's session and logged in: the ID led to another user's
//	                          session
//	ended_open                a request's context has ended, since the session ended while the request had it open. That
//	                          takes up to two seconds: a request that is done before does not report it. The others
//	                          report it at their next commit, or when their handler has returned
//	lost        lease         the holder's lease has expired, since it was paused or Redis was away for too long
//	            max_hold      the holder had it for longer than Options.MaxHold
//	            taken         another holder has the lock
//	            changed       another request has changed the record
//	            ended         the session was ended
//	            gone          the lock or the record was deleted or evicted, has expired, or was lost in a failover
//	            unavailable   the holder has built on the changes of the request before, whose commit has failed; or it
//	                          is not known whether the holder's own commit has given the session a new ID, as a login
//	                          does. If Redis has not replied to any other commit, no lock is reported as lost
//	extended                  the lease of a lock was extended, or could not be: see Err
//	handed_over               this process has released the lock, and another process has waited for it
//	swept                     a lock was removed in the background: of a request whose commit got no reply, whose
//	                          session had ended, whose client had gone away, or that had lost the lock and still had
//	                          its key
type SessionEvent struct {
	// Session is the public ID.
	Session string
	// What has happened, and How, as in the table.
	What, How string
	// To is the new ID of a session that was renewed.
	To   string
	Time time.Time
	// Err is why a lock was lost or not extended.
	Err error
}

// Clone implements [Event].
func (e *RequestEvent) Clone() Event {
	c := *e
	c.Holds = slices.Clone(e.Holds)
	return &c
}

// Clone implements [Event].
func (e *ExchangeEvent) Clone() Event { c := *e; return &c }

// Clone implements [Event].
func (e *SessionEvent) Clone() Event { c := *e; return &c }

func (*RequestEvent) isEvent()  {}
func (*ExchangeEvent) isEvent() {}
func (*SessionEvent) isEvent()  {}

// Package users explores exhaustively how sessions begin and end, as a second small model beside package
// model: logins, first records, claims, and the ends of one session or of all of a user's sessions, with each
// command late, repeated, or lost.
//
// # The model
//
// Two to four calls are made in two processes, at any time and at once. A call logs in (also with
// MaxSessions 1 or 2, or in place of an earlier login), creates a guest's session, comes back with a session
// (which claims it), gives it a new ID (Renew), saves it, ends it (End), or ends all of a user's sessions or
// all but one (EndAll). A call that needs a session uses the last one that a call before it begins.
//
// The server's side is not modelled: it is the library's own scripts, in package fakeredis. The client's
// side follows internal/records/clock.go, internal/records/load.go, internal/records/hold.go,
// internal/records/max_sessions.go, internal/records/unclaimed.go and internal/records/user_end.go: a call
// makes its round trips one after the other, and tries a command up to three times if it was refused because of
// the clock.
//
// A state is the content of Redis, the time there and in the processes, what these know of Redis's clock,
// the phase of each call, and the set of commands that were ever sent. A step is one of these:
//
//   - The request of a login arrives, or a call sends its next command.
//   - A command is executed, and its reply is received.
//   - A call gives up, at any time, without knowing whether its command was executed.
//   - Any command that was ever sent is executed, and its reply is lost. There is no limit to that. So
//     commands come late, again, and for the first time after their call has given up; replies are lost;
//     and a repetition is a command whose first reply was lost and whose second is received.
//   - Time passes: a second, 30 s (the longest that a command may be late), a minute (the life of a
//     tombstone), or an hour (for which an EndAll is remembered).
//   - Redis's clock is set by hours or seconds: back at any time, and forward while no call is under way.
//
// At first a process knows nothing of Redis's clock, or is right, or is wrong by a second or three hours,
// behind or ahead.
//
// # What is checked
//
// In each step:
//
//   - A session begins once, in time, and only by its own command. So an ended session never comes alive
//     again.
//   - A login does not begin a session if the user's sessions were ended since its request arrived. A Renew
//     begins one only in place of a live one.
//   - Each EndAll ends sessions once, in time, and before its call has returned, if the call succeeds. So
//     no EndAll ends a session that begins after it.
//   - A session ends only by a command that is meant to end it.
//   - Live sessions are on the list, and no others. There is no list without a mark that has an epoch.
//   - All keys have a timeout.
//   - A session of a user is unclaimed when it begins. It counts as claimed as soon as it is claimed or spared by
//     EndAll, or if the mark has no room for it, and it does not become unclaimed again.
//   - If a login names an unclaimed session, that session gives way, and what is below it. Others do
//     only if MaxSessions asks for it, and no more than that. A login ends no session.
//   - The first claim of a session ends the sessions below it, except those that were claimed meanwhile, and
//     says exactly which it has ended. Any other claim changes nothing.
//   - The mark has an entry only for a session that has begun. An entry names a newer session with an entry, and
//     only EndAll makes the mark name a session otherwise.
//
// When a call receives a reply: if it succeeds, its session is stored; the session that it has ended has
// ended, and for EndAll all sessions that were alive when it was sent; if it is refused, there is a reason.
// RefuseLogin refuses a login only because of claimed sessions.
//
// # How many states
//
// go test visits a hundred thousand states, and with -all eight million: all combinations of three calls
// that begin with a login or a guest's session, with the right clock; all pairs, with all clocks, and with
// two passages of time; and some combinations of four calls. With the right clock, two calls lead to a few
// thousand states, three to ten thousand, and four to a few hundred thousand.
//
// Four logins do not fill a mark, which has room for sixteen unclaimed sessions. So some models make it smaller.
//
// # Exceptions
//
// These are the library's own:
//
//   - If a clock is ahead by less time than a command may be late, that is not noticed at once. A login
//     under way for that long may pass an EndAll that was done meanwhile. A clock gets ahead only if
//     Redis's clock was set back, or if the clocks of a cluster's nodes differ.
//   - After an EndAll has failed, its command may be executed as long as it is not late. It ends all
//     sessions that have begun by then.
//   - A copy of a login that was refused for MaxSessions may be stored if there is room by then and it is
//     not late. No client has its ID.
//   - After Redis's clock was set back, a login may be refused once although it came after the EndAll.
//
// # What it does not cover
//
// Clocks that are set forward in the middle of a call: the state that a copy would have found expires then,
// and the new clock does not know when a request arrived. A copy that comes exactly as many hours late as
// its process's clock was ahead when it was sent: only then is it in time. Timeouts of sessions, the lock's
// queue, several lists while keys of Encryption change, lost keys. For these see package simulation.
package users

// Package users explores how sessions begin and end to the last order of the commands, as a second small
// model beside package model: logins, first records, and the ends of one session or of all of a
// user's, with each command late, again, or lost.
//
// # The model
//
// Two to four calls are made in two processes, at any time and at once. A call logs in, also with
// MaxSessions 1, creates a guest's session, gives a session a new id (Renew), saves it, ends it (End), or
// ends all of a user's sessions or all but one (EndAll). Those that need a session are about the last one
// that a call before them begins.
//
// The server's side is not modelled. It is the library's own scripts, in package fakeredis. The client's
// side follows internal/records/clock.go, internal/records/load.go, internal/records/hold.go, internal/records/login.go and
// internal/records/user_end.go: a call makes its exchanges one after the other, and tries up to three times what
// was refused for the clock.
//
// A state is what Redis has, what time it is there and in the processes, what these know of
// Redis's clock, where each call is, and which commands were ever sent. A step is one of these:
//
//   - The request of a login arrives, or a call sends its next command.
//   - A command is executed, and its reply heard.
//   - A call gives up, at any time, and nobody knows whether its command was executed.
//   - Any command that was ever sent is executed, and nobody hears the reply. There is no limit to that. So
//     commands come late, again, and for the first time after their call has given up; replies are
//     lost; and a repetition is one that is heard after one that is not.
//   - Time passes: a second, 30 s (which is how late a command may be at the most), a minute (a
//     tombstone's), or an hour (for which an EndAll is remembered).
//   - Redis's clock is set by hours or seconds, back at any time, and forth while no call is under way.
//
// At first a process knows nothing of Redis's clock, or is right, or is wrong by a second or three hours,
// behind or ahead.
//
// # What is checked
//
// In each step: a session begins once, in time, and only by its own command. So what is over never comes
// alive again. A login does not begin a session if the user's sessions were ended since its request
// came; a Renew only in the place of one that is alive. Each EndAll ends sessions once, in time, and before
// its call has returned, if that succeeds. So none ends what has begun after it. A session ends only by
// what is to end it. Those that are alive are on the list, and no others, and there is no list without a
// mark that has an epoch. All keys have a timeout.
//
// When a call hears a reply: whoever is answered finds its session stored; what it has ended is over, and
// with EndAll all that was alive when it was sent; and whoever is refused has a reason.
//
// # How many states
//
// go test visits 50 thousand states, and with -all five and a half million: all of three calls that
// begin with a login or a guest's session, with the right clock; all pairs, with all clocks, and time that
// passes twice; and some of four calls. With the right clock, two calls come to a few thousand states, three
// to ten thousand, and four to a few hundred thousand.
//
// # Exceptions
//
// These are the library's own:
//
//   - A clock that is ahead by less than a command may be late is not noticed at once. A login that is on
//     its way for as long may pass an EndAll that was done meanwhile. Only Redis's clock that was set back
//     makes it so, or the clocks of a cluster's nodes.
//   - After an EndAll that has failed, its command may be done as long as it is not late. It ends what has
//     begun by then.
//   - A copy of a login that was refused for MaxSessions may be stored, if there is room by then and it
//     is not late. Nobody has its id.
//   - After Redis's clock was set back, a login may be refused once although it came after the EndAll.
//
// # What it does not cover
//
// Clocks that are set forth in the middle of a call: what a copy would have found runs out then, and when a
// request came is not known by the new clock. A copy that comes just as many hours late as its process's
// clock was ahead when it was sent: only then it is in time. Timeouts of sessions, the lock's queue, several
// lists while keys of Encryption change, keys that are lost. For these see package simulation.
package users

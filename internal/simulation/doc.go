// Package simulation runs the whole of Latchkey in fake time: the real middleware, store and locks, in
// several processes, over a simulated network and a Redis that executes the real scripts. Hours of faults
// pass in seconds, and a seed repeats them exactly.
//
// # The way of one run
//
//   - Package plan draws a [plan.Plan] from a seed: options, requests and faults, each with its time. A
//     plan is data, so that it can be shrunk.
//   - Package world carries the plan out, in one bubble of testing/synctest. Each process is a
//     middleware.Sessions over a store.Store over a redigo pool, with connections that lead through a
//     simulated network to package fakeredis. A client calls the handler directly, with its own
//     ResponseWriter, and a jar for the cookies of a guest and of a member. A job calls Sessions.Update.
//   - Each request leaves a [history.Request]: what its handler saw, what it wrote, when, and the
//     response. A request leaves two if its handler reopens its session or runs a second time. Package
//     history judges them all, and knows nothing else.
//   - Each process has observers. Package told judges whether what they were told agrees with the requests,
//     and with what went through the client of Redis. In half of the runs one observer panics, blocks or calls
//     runtime.Goexit now and then: no other request may notice, and no other observer.
//   - The commands on a cut connection, and copies of commands, may arrive hours late. Then the visitors
//     log in now and then until all have arrived, and the cookies of ended sessions are tried again.
//   - A plan that breaks a rule is shrunk to the few requests and faults that are needed, by running it
//     again, and is then told as a story.
//
// # What is judged
//
// Each write appends a unique token to a list in the session. So every read shows all writes before it, in
// their order: a write that was answered is in every later read, two writes never build on the same list,
// and nothing of a refused request is ever seen. Package history describes all rules.
//
// Some requests log in as one of a few users. Sessions of users are ended one by one, all, or all but one,
// by a handler or from outside; each ending leaves a [history.Ending]. A session that was ended before a
// request began is never alive in that request, and nothing is saved in it. All other sessions stay as they
// are.
//
// Requests of one browser cross each other. So a request may come with an ID that a login has moved, or with a
// member's cookie that is dead beside a guest's that is not. If two logins cross, the second one takes the session of
// the first one over, unless somebody has come back with it. A cart in each session, which no login writes, shows that.
//
// # Why a seed is enough
//
// All randomness comes from the seed. One generator draws the plan. Each connection has its own generator
// for what happens to its commands, so that a plan with one request less is nearly the same for the others.
// crypto/rand, from which Latchkey draws its tokens and jitter, is seeded as well. One thread runs the
// bubble, and the garbage collector waits for its end. No two messages arrive in the same nanosecond.
//
// So most runs are the same each time. The Go runtime still makes some random choices: of two timers of the
// same instant, and of two ready cases of a select, either may be first. If a seed does not repeat what it
// has shown, -exactly (make simulate EXACTLY=1) builds the test with a runtime that makes no such choices.
// The race detector makes the scheduler choose at random, too, so with it a seed only names a plan.
//
// # How the simulation is tested
//
// The simulation must find the errors that it is meant to find. The command internal/defects runs it on
// versions of Latchkey that are broken on purpose. Packages history and told are tested with wrong histories
// and events.
//
// # What cannot be simulated
//
// A bubble's time stands still while a goroutine waits for a sync.Mutex. The middleware holds a mutex while
// it opens or commits a session, so two goroutines of one request never do that at once here; they take
// turns. The suite in internal/faults, with real processes, covers that.
package simulation

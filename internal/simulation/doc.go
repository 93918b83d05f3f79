// Package simulation runs the whole of Latchkey in fake time: the middleware, the store
// and the locks as they are, in several processes, over a simulated network and a Redis
// that executes the real scripts. Hours of faults pass in seconds, and a seed brings
// them back exactly.
//
// # The way of one run
//
//   - Package plan draws a [plan.Plan] from a seed: options, requests and faults, each
//     with its time. It is data, so that it can be cut down.
//   - Package world carries it out, in one bubble of testing/synctest: each process is a
//     middleware.Sessions over a store.Store over a redigo pool, whose connections lead
//     through a simulated network to package fakeredis. A client calls the handler itself,
//     with a cookie jar and a ResponseWriter of its own; a job calls Sessions.Update.
//   - Each request leaves a [history.Request]: what its handler saw, what it wrote, when,
//     and what was answered; one whose handler reopens its session, or runs a second time,
//     leaves two. Package history judges them all, and knows nothing of the rest.
//   - What a cut connection had, and copies of commands, may come hours late. Then the visitors log in
//     now and then until all has come, and the cookies of sessions that are over are tried once more.
//   - A plan that breaks a rule is cut down to the few requests and faults that it takes,
//     by running it again, and told as a story.
//
// # What is judged
//
// Each write appends a token of its own to a list in the session. So whoever reads the
// session tells the order of all writes before it, and every one of them has its place:
// a write that was answered is in every later read, two writes never build on the same
// list, and nothing of a refused request is ever seen. Package history tells all rules.
//
// Some requests log in as one of few users, whose sessions are ended one by one, all, or all but
// one, by a handler or from outside: each leaves a [history.Ending]. What was ended before a
// request began is never alive in it, and nothing is saved in it; all others stay as they are.
//
// # Why a seed is enough
//
// Everything random comes from the seed: the plan from one generator, and what happens
// to the commands on a connection from a generator of that connection, so that to leave
// out one request changes little for the others. crypto/rand, from which Latchkey draws
// its tokens and jitter, is seeded as well. One thread runs the bubble, and the garbage
// collector waits for its end. Each message arrives in a nanosecond of its own.
//
// So most runs are the same each time. What is left are the dice of Go's runtime: of two
// timers of the same instant, and of two cases of a select, either may be first. If a seed
// does not bring back what it has shown, -exactly (make simulate EXACTLY=1) builds the test
// anew with a runtime that has none. The race detector has the scheduler choose at random,
// too, so with it a seed only names a plan.
//
// # The simulation itself
//
// It must find what it is there to find. The command internal/defects runs it over Latchkeys that
// are broken on purpose, and package history is tested with histories that are wrong.
//
// # What cannot be simulated
//
// A bubble's time stands still while a goroutine waits for a sync.Mutex. The middleware
// holds one while it opens or commits a session, so two goroutines of one request never
// do that at once here; they take turns. The suite in internal/faults, with real processes,
// does the other.
package simulation

// Package model explores the protocol of package store exhaustively, as a small model: every course that
// three requests can take, with every fault.
//
// # The model
//
// Three requests come for one session: A and B to one process, C to another. Each of them writes a small or
// a large record, only reads, ends the session, or first tries to write without the lock. A and B wait in
// one line. If one follows the other, they share a tenure: the lock is handed on, before or after the
// commit, or released in between. Processes compete through the queue in Redis, each with one place.
//
// The first try of a request is a SET of the lock and an MGET of lock and record. A large record is staged
// by a SET before the script that renames it. Each of these commands is a separate step: commands of others
// come between them, connections break between them, and each SET may come late or again by itself.
//
// The server's side is not modelled: it is the library's own scripts, read from the source, in package
// fakeredis. The client's side is a few hundred lines that follow internal/records/take.go,
// internal/records/tenure.go, internal/records/commit.go, internal/records/staged.go,
// internal/records/optimistic.go, middleware/optimistic.go, internal/lease/contest.go,
// internal/lease/queue.go and internal/lease/sweep.go step by step. If a clock decides there, both outcomes
// are explored here.
//
// A state is the content of Redis, the phase of each request and tenure, and the commands under way. A step
// is one of these: a request comes; a command is sent, or executed and replied to; a hold ends, in each way
// it can; a place asks; a token or place without an owner is swept out. These are the faults:
//
//   - A connection breaks, before or after the command was executed, or no reply comes in time. The client
//     sends the command once more, or gives up. The command may still be executed, at any later time, or
//     never.
//   - The network doubles a command.
//   - A lease expires under its holder, or the turn of a process expires that would have used it.
//   - A process crashes. Redis notices later.
//
// A waiting request may give up at any time, and a place may ask although nothing has changed.
//
// Leases and turns on which no request relies expire at any time; that is no fault. A wake-up message has
// no step: a place asks when asking may help, told or not. A late reply has no step either: it is the same
// as a client that acts slowly on a reply, which every client may. A reply that comes twice is dropped by
// its number, see internal/scripting/reply.go. The replies to a plain take have no number: a reply that
// belongs to another take may say that another request has the lock, and does so here at any time.
//
// # What is checked
//
// In each step:
//
//   - A record is replaced only by a request that has read or written exactly that record. The request has
//     the lock, or finds that there is neither a holder nor a place in the queue. So no write is lost, no
//     two tenures succeed on the same record, and no request writes twice.
//   - A request that begins has the lock, and the current record.
//   - The lock is never taken away from its holder, and it is not free while a process that listens stands
//     in the queue.
//   - A place leaves the queue only to get the lock, by its own process, or when its process is gone. The
//     order of the queue stays.
//   - A request that was answered finds its write stored. A request that was refused leaves nothing, then
//     or later. A record that was only read was the stored one at some moment between the request and its response.
//   - An ended session stays ended.
//   - Without faults no request is refused.
//   - All keys have a timeout.
//
// In each state: if nothing more goes wrong, every order of the remaining steps comes to an end, within a
// number of steps that is reported. By then every request has its response, the lock is free, and the queue
// is empty.
//
// The library itself has two exceptions, if the network doubles a command that was sent once. Its sender
// may be told that nothing was stored, and the copy is stored later. And if a write without the lock was
// refused, its copy may be stored and another write may build on it before the sender has the lock: then
// the sender writes twice.
//
// # Bounds
//
// A [Bounds] limits how many faults there are in an exploration. The test shows the bounds, and the number
// of states and steps. Nothing else is bounded.
//
// # What it does not cover
//
// More than three requests, so nothing about long lines. Time itself: how long anything lasts, timeouts of
// the session, and the minute of a staged record. Extensions of the lock, except for what they may find. A Redis that
// restarts, is full, refuses commands or forgets keys; a subscription that is lost while its process lives.
// Renew's second ID, large records that are written without the lock, corrupt records, locks elsewhere. The
// simulation above this package covers these, at random. Below this package, users explores how sessions
// begin and end, and jar what the cookies of a browser are worth.
package model

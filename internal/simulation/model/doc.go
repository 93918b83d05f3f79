// Package model explores the protocol of package store to the end, as a small model: all
// that three requests may come to, whatever goes wrong.
//
// # The model
//
// Three requests come for one session: A and B to one process, C to another. Each writes, a
// little or much, only reads, ends the session, or writes without the lock first. A and B wait in one line, and where one
// follows the other they share a tenure: the lock is handed on, before or after the commit, or
// given back in between. Processes compete by the queue in Redis, each with one place.
//
// The first try of a request is a SET of the lock and an MGET of lock and record, and a large
// record is staged by a SET before the script that renames it. Each of these commands is a step of
// its own: others' come between them, connections break between them, and each SET may come late
// or again by itself.
//
// The server's side is not modelled. It is the library's own scripts, read from the
// source, in package fakeredis. The client's side is a few hundred lines that follow
// internal/records/take.go, internal/records/tenure.go, internal/records/commit.go, internal/records/staged.go, internal/records/optimistic.go,
// middleware/optimistic.go, internal/lease/acquire.go, internal/lease/queue.go and
// internal/lease/sweep.go step by step. Where a clock
// decides there, both outcomes are explored here.
//
// A state is what Redis has, where each request and tenure is, and the commands on their
// way. A step is one of these: a request comes; a command is sent, or executed and
// answered; a hold ends, in each way it can; a place asks; a token or place that nobody
// owns is swept out. And these are the faults:
//
//   - A connection breaks, before or after the command was executed, or no reply comes in
//     time. The client sends the command once more, or gives up. What it has sent may
//     still be executed, at any time from then on, or never.
//   - The network doubles a command.
//   - A lease runs out under its holder, or the turn of a process that would have come.
//   - A process crashes. Redis notices later.
//
// A request that waits may give up at any time, and a place may ask although nothing
// has changed.
//
// Leases and turns that nobody relies on run out at any time; that is no fault. A wake-up
// message has no step of its own: a place asks when asking is of use, told or not. A
// reply that is late has none either: it is like a client that is slow to act on what it
// was told, and all are. A reply that comes twice is dropped by its number, see
// internal/scripting/sequence.go. The replies to a plain take have none: one that is another's may
// say that another has the lock, and does here, at any time.
//
// # What is checked
//
// In each step: a record is replaced only by a request that has read or written just that record,
// and has its lock, or finds that nobody has it or stands in the queue. So no write is lost and no
// two tenures succeed on the same one; nor does a request write twice. Who begins has the lock, and the record that is there then. The lock is taken from
// nobody, and is not free while a process that listens stands in the queue. A place leaves
// the queue only for the lock, by its own process, or with the process; the order stays.
// Whoever was answered finds his write stored; whoever was refused leaves nothing, then or
// later; what was only read was stored at some moment between the coming and the answer. An
// ended session stays so. Without faults nobody is refused. All keys have a timeout.
//
// In each state: if nothing more goes wrong, every order of the steps that are left comes
// to an end, within a number of steps that is told. Everybody is answered then, the
// lock is free, and so is the queue.
//
// Two exceptions are the library's own, if the network doubles a command that was sent once. Its
// sender may be told that nothing was stored, and the copy is stored later. And a write without the
// lock that was refused may be stored by its copy, and have another on top of it before its sender
// has the lock: then that writes twice.
//
// # Bounds
//
// How often something goes wrong is bounded in each exploration, by a [Bounds]; the test
// tells which, and how many states and steps there are. Nothing else is bounded.
//
// # What it does not cover
//
// More than three requests, so nothing about long lines. Time itself: how long anything
// lasts, timeouts of the session, and the minute of a staged record. The watchdog, but for
// what it may find. Redis that restarts, is full, refuses commands or forgets keys; a
// subscription that is lost while its process lives. Renew's second id, large records that are
// written without the lock, corrupt records, locks elsewhere. The simulation above this package does these, by
// chance. How sessions begin and end is explored by package users, below this one.
package model

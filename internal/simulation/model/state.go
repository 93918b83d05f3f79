package model

import "strings"

// The model has three requests in two processes: A and B in the first, C in the second.
const (
	requests  = 3
	processes = 2
	spares    = 4 // how many tokens of a request, and places of a process, can be in use at once
	copies    = 7 // and how many commands can be under way late
)

func home(r uint8) uint8 { return r / 2 }

// A token is the (token-1)%spares-th of its request; 0 means none. It is also a stamp.
type token uint8

const born token = 255 // the stamp of the record at the beginning

func tokenOf(r, i uint8) token { return token(1 + r*spares + i) }

func (t token) request() uint8 { return uint8(t-1) / spares }

// of reports whether t is a token of r.
func (t token) of(r uint8) bool { return t != 0 && t != born && t.request() == r }

func (t token) String() string {
	switch t {
	case 0:
		return "nobody"
	case born:
		return "Z0"
	}
	return string(rune('A'+t.request())) + string(rune('1'+uint8(t-1)%spares))
}

// stamp is as long as the stamps of the library.
func (t token) stamp() string { return (t.String() + strings.Repeat("x", 16))[:16] }

// text is the token as Redis knows it; ” for none.
func (t token) text() string {
	if t == 0 {
		return ""
	}
	return t.stamp() + " a request"
}

// A place is the (place-1)%spares-th of its process; 0 means none.
type place uint8

func placeOf(p, i uint8) place { return place(1 + p*spares + i) }

func (p place) process() uint8 { return uint8(p-1) / spares }

func (p place) text() string {
	if p == 0 {
		return ""
	}
	return channel(p.process()) + "/" + string(rune('1'+uint8(p-1)%spares))
}

func channel(process uint8) string { return "latchkey:wake:" + string(rune('p'+process)) }

// A chain is the requests whose writes are in a record, in order. It is the content of a session.
type chain uint8

func (c chain) len() (n int) {
	for ; c != 0; c >>= 2 {
		n++
	}
	return n
}

func (c chain) add(r uint8) chain { return c | chain(r+1)<<(2*c.len()) }

func (c chain) has(r uint8) bool {
	for ; c != 0; c >>= 2 {
		if uint8(c&3) == r+1 {
			return true
		}
	}
	return false
}

// count returns how often r has written, and whether twice in a row.
func (c chain) count(r uint8) (times int, inARow bool) {
	before := false
	for ; c != 0; c >>= 2 {
		now := uint8(c&3) == r+1
		if now {
			times++
		}
		inARow, before = inARow || now && before, now
	}
	return times, inARow
}

// begins reports whether other is c or continues it.
func (c chain) begins(other chain) bool { return other&(1<<(2*c.len())-1) == c }

func (c chain) String() string {
	var b []byte
	for ; c != 0; c >>= 2 {
		b = append(b, 'A'-1+byte(c&3))
	}
	return string(b)
}

// A phase is the progress of a request.
type phase uint8

const (
	idle    phase = iota // it has not come yet
	saving               // its write without the lock is under way
	inLine               // waits for its turn in its process
	asking               // its take is under way
	resting              // another request has the lock
	holding
	ended // its version must be sent
	sent  // its version is under way
	done
)

// A verdict is the response to a request.
type verdict uint8

const (
	none verdict = iota
	answered
	timedOut    // 503: nothing was stored
	goneAlready // the session has ended: nothing was stored
	lost        // nothing was stored
	lostAgain   // lost, but an earlier try may have been stored
	unavailable // it may have been stored
	crashed     // there was no response
)

// refused reports whether it is certain that nothing was stored.
func (v verdict) refused() bool { return v == timedOut || v == goneAlready || v == lost }

type request struct {
	phase    phase
	verdict  verdict
	token    token
	tenure   uint8 // the request that took it
	saw      chain // the chain of the session when its hold began
	began    uint8 // the length of the chain when it came; over: the session had ended
	joined   bool  // it follows another hold of its process
	flush    bool  // it has handed the session on, and must send its version
	repeated bool  // asking: the script was sent a second time
	call     callID

	// ambiguous: the reply to a plain take was lost, so token may have the lock, or get it later.
	ambiguous bool
	part      uint8 // of a plain take: how many of its commands were executed
	found     found
}

const over = 9

// A tenure is that of internal/records/tenure.go. An inactive tenure is all zero.
type tenure struct {
	active   bool
	token    token // the token in Redis
	base     token // the stamp of the record in Redis
	stored   chain // the chain of that record
	newest   chain // the chain in memory
	gone     bool  // the session is about to end
	stamp    token // of the newest record, if it must be written; otherwise 0
	holder   uint8 // the present holder, or the last one
	unlock   unlock
	lapsed   bool   // the lock was lost while a commit was under way, which counts
	call     callID // of the commit under way; 0: none
	repeated bool
	staged   bool // the record that the commit renames is staged
}

// An unlock is how the last holder releases the session.
type unlock uint8

const (
	notYet unlock = iota
	pass          // to the next request in this process
	release
)

type process struct {
	dead      bool
	deaf      bool  // Redis has noticed
	listening bool  // to its channel
	turn      uint8 // the request that has the turn in the process, plus 1
	place     place // its place in the queue
	owed      place // the place that it was told it has there
}

// used counts the faults of a trace.
type used struct {
	broken, doubled, expired, crashed, left, asked uint8
}

func (u used) faults() uint8 { return u.broken + u.doubled + u.expired + u.crashed }

// A state is everything at one moment. States can be compared.
type state struct {
	db        dbID
	requests  [requests]request
	tenures   [requests]tenure
	processes [processes]process
	late      [copies]callID // sorted, 0s last: no client waits for them any more
	tokens    uint16         // that are swept
	places    uint8          // that are swept
	used      used

	// Only the checks know these.
	chain chain // of the record, or of the one that ended
	maybe uint8 // requests with a version in a command that was doubled
}

// first returns the first request in line in process p, plus 1.
func (s *state) first(p uint8) uint8 {
	for r := range uint8(requests) {
		if home(r) == p && s.requests[r].phase == inLine {
			return r + 1
		}
	}
	return 0
}

// waits reports whether any request in p waits for the lock.
func (s *state) waits(p uint8) bool {
	for r := range uint8(requests) {
		if ph := s.requests[r].phase; home(r) == p && ph >= inLine && ph <= resting {
			return true
		}
	}
	return false
}

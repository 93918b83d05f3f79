package model

import "strings"

// The model has three requests in two processes: A and B in the first, C in the
// second.
const (
	requests  = 3
	processes = 2
	spares    = 4 // how many tokens a request, and places a process, can have about at once
	copies    = 7 // and how many commands can be on their way late
)

func home(r uint8) uint8 { return r / 2 }

// A token is the (token-1)%spares-th of its request; 0 is none. It is its stamp, too.
type token uint8

const born token = 255 // the stamp of the record at the beginning

func tokenOf(r, i uint8) token { return token(1 + r*spares + i) }

func (t token) request() uint8 { return uint8(t-1) / spares }

// of reports whether t is one of r's.
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

// stamp is as long as those of the library.
func (t token) stamp() string { return (t.String() + strings.Repeat("x", 16))[:16] }

// text is the token as Redis knows it; ” for none.
func (t token) text() string {
	if t == 0 {
		return ""
	}
	return t.stamp() + " a request"
}

// A place is the (place-1)%spares-th of its process; 0 is none.
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

// A chain is the requests whose writes are in a record, in their order. It is what a
// session holds.
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

// count returns how often r has written, and whether that was twice in a row.
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

// begins reports whether other is c or was made from it.
func (c chain) begins(other chain) bool { return other&(1<<(2*c.len())-1) == c }

func (c chain) String() string {
	var b []byte
	for ; c != 0; c >>= 2 {
		b = append(b, 'A'-1+byte(c&3))
	}
	return string(b)
}

// A phase is how far a request has come.
type phase uint8

const (
	idle    phase = iota // it has not come yet
	saving               // its write without the lock is under way
	inLine               // waits for its turn in its process
	asking               // its take is under way
	resting              // another has the lock
	holding
	ended // its version is to be sent
	sent  // its version is on its way
	done
)

// A verdict is what a request was told.
type verdict uint8

const (
	none verdict = iota
	answered
	timedOut    // 503: nothing was stored
	goneAlready // the session has ended: nothing was stored
	lost        // nothing was stored
	lostAgain   // lost, but an earlier try may have been stored
	unavailable // it may have been stored
	crashed     // nobody was told anything
)

// refused reports whether nothing was stored, for certain.
func (v verdict) refused() bool { return v == timedOut || v == goneAlready || v == lost }

type request struct {
	phase    phase
	verdict  verdict
	token    token
	tenure   uint8 // the request that took it
	saw      chain // what it holds was this when it began to
	began    uint8 // how long the chain was when it came; over: the session had ended
	joined   bool  // it follows another hold of its process
	flush    bool  // it has handed the session on, and is to see to its version
	repeated bool  // asking: the script was sent a second time
	call     callID

	// ambiguous: the reply to a plain take was lost, so token may have the lock, or get it yet.
	ambiguous bool
	part      uint8 // of a plain take: how many of its commands were executed
	found     found
}

const over = 9

// A tenure is that of internal/records/tenure.go. One that is not active is all zero.
type tenure struct {
	active   bool
	token    token // which Redis has
	base     token // the stamp of the record that Redis has
	stored   chain // and what is in it
	newest   chain // what is in memory
	gone     bool  // the session is to end
	stamp    token // of the newest record, if that is to be written; else 0
	holder   uint8 // the present one, or the last
	unlock   unlock
	lapsed   bool   // the lock was lost while a commit was under way, which counts
	call     callID // of the commit under way; 0: none
	repeated bool
	staged   bool // the record is staged that the commit renames
}

// An unlock is how the last holder gives the session back.
type unlock uint8

const (
	notYet unlock = iota
	pass          // to who waits in this process
	release
)

type process struct {
	dead      bool
	deaf      bool  // Redis has noticed
	listening bool  // to its channel
	turn      uint8 // whose turn it is in the process: request+1
	place     place // what it has in the queue
	owed      place // what it was told that it has there
}

// used counts the faults of a trace.
type used struct {
	broken, doubled, expired, crashed, left, asked uint8
}

func (u used) faults() uint8 { return u.broken + u.doubled + u.expired + u.crashed }

// A state is all that there is at a moment. It can be compared.
type state struct {
	db        dbID
	requests  [requests]request
	tenures   [requests]tenure
	processes [processes]process
	late      [copies]callID // sorted, 0s last: nobody waits for them any more
	tokens    uint16         // that are swept
	places    uint8          // that are
	used      used

	// What only the checks know.
	chain chain // that of the record, or of the one that ended
	maybe uint8 // requests with a version in a command that was doubled
}

// first returns the first request that waits in line in process p, counted from 1.
func (s *state) first(p uint8) uint8 {
	for r := range uint8(requests) {
		if home(r) == p && s.requests[r].phase == inLine {
			return r + 1
		}
	}
	return 0
}

// waits reports whether anybody in p waits for the lock.
func (s *state) waits(p uint8) bool {
	for r := range uint8(requests) {
		if ph := s.requests[r].phase; home(r) == p && ph >= inLine && ph <= resting {
			return true
		}
	}
	return false
}

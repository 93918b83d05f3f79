package users

import (
	"fmt"
	"strconv"
	"strings"
)

// Values that all commands share. Times are in seconds.
const (
	base     = 1_700_000_000 // Unix time: the model's time 0, while Redis's clock is right
	within   = 30            // for how long the library gives a command that must not come late, at most
	timeout  = within        // of an exchange; of what must not come late, all tries of it together
	started  = -10           // when the processes did
	ttl      = "43200000"    // ms of a session, longer than the model goes on
	lifetime = ttl
	keeps    = "60000" // ms of a tombstone
	lease    = "10000"

	tag  = "latchkey:{useruseruseruser}"
	list = tag + ".list"
	mark = tag + ".user"

	nobody = "000000000000000" // the epoch of the mark, if there is no session
)

// A kind is a script.
type kind uint8

const (
	login kind = iota
	create
	endAll
	end
	take
	commit
	drop
	kinds
)

// files are the scripts of the kinds.
var files = [kinds]string{
	login:  "internal/records/login.lua",
	create: "internal/records/create.lua",
	endAll: "internal/records/endall.lua",
	end:    "internal/records/end.lua",
	take:   "internal/records/take.lua",
	commit: "internal/records/commit.lua",
	drop:   "internal/records/drop.lua",
}

// inTime reports whether it is done only for a while after it was sent.
func (k kind) inTime() bool { return k <= endAll }

// A command is what is sent.
type command struct {
	kind    kind
	call    uint8 // that has sent it
	session uint8 // that it is about
	guest   bool  // that is a guest's

	// Of one that must not come late:
	known   Clock   // Redis's clock, as the process knows it
	sent    seconds // when it was
	arrived seconds // login: when its request was there
	ahead   seconds // by how much known is ahead of what Redis's clock says
	old     uint8   // login: the session that it takes the place of; endAll: the one that stays; none
	most    int8    // login: see ARGV[10]
	refuse  bool

	stamp     textID // commit: of the record that it replaces
	mark      textID // as it was read
	tombstone bool
}

// A commandID is a command's number; 0 is none.
type commandID uint16

// A textID is the number of a text that Redis has answered; 0 is "".
type textID uint16

const none = 255

// seconds are how many have passed.
type seconds int16

// A Clock is Redis's, as a process knows it: by how many seconds it is ahead of the model's.
type Clock seconds

// Unknown is a Clock that a process knows nothing of yet.
const Unknown Clock = -1 << 15

// Clocks are those of the processes.
type Clocks [processes]Clock

// says is what the clock says at t, as scripts want it.
func (c Clock) says(t seconds) string {
	if c == Unknown {
		return strconv.Itoa(int(t-started)) + "000000"
	}
	return strconv.Itoa(base+int(c)+int(t)) + "000000"
}

func (c Clock) String() string {
	if c == Unknown {
		return "unknown"
	}
	return fmt.Sprintf("%+d s", seconds(c))
}

func member(session uint8) string { return "session-" + strings.Repeat(name(session), 3) }

func recordKey(session uint8, guest bool) string {
	if guest {
		return "latchkey:{a-guest's-session----" + name(session) + "}"
	}
	return tag + ":" + member(session)
}

// stampOf returns the stamp of the record, or of the tombstone, that a call writes.
func stampOf(call uint8, tombstone bool) string {
	if tombstone {
		return strings.Repeat("t", 15) + name(call)
	}
	return strings.Repeat("s", 15) + name(call)
}

func token(call uint8) string { return strings.Repeat("k", 15) + name(call) }

// epochOf is the epoch that a login brings.
func epochOf(call uint8) string { return strconv.Itoa(100_000_000_000_000 + 1000*(int(call)+1)) }

func (c *command) record() string {
	head := `{"v":2,"s":"` + stampOf(c.call, c.tombstone) + `",`
	switch {
	case c.tombstone:
		return head + `"gone":` + strconv.Itoa(base*1000) + `}`
	case c.guest:
		return head + `"c":` + strconv.Itoa(base*1000) + `,"d":{}}`
	}
	return head + `"c":` + strconv.Itoa(base*1000) + `,"g":000000000000000,"d":["ann","",{}]}`
}

// sends returns c as Redis gets it.
func (s *server) sends(c *command) []string {
	key := recordKey(c.session, c.guest)
	keys, args := []string{key, key + ".lock", key + ".lock.queue"}, []string(nil)
	if !c.guest {
		keys = append(keys, mark)
	}
	if !c.guest && (c.kind == login || c.kind == end || c.kind == drop || c.tombstone) {
		keys = append(keys, list)
	}
	switch c.kind {
	case login:
		old := ""
		if c.old != none {
			old = member(c.old)
		}
		args = []string{stampOf(c.call, false), c.record(), ttl, lifetime, old, strconv.Itoa(int(c.most)), strconv.Itoa(int(bool01(c.refuse))), epochOf(c.call)}
	case create:
		args = []string{stampOf(c.call, false), c.record(), ttl}
	case endAll:
		keys, args = []string{mark, list}, []string{token(c.call)}
		if c.old != none {
			args = append(args, member(c.old))
		}
	case end:
		args = []string{(&command{call: c.call, tombstone: true}).record(), keeps}
	case drop:
		args = []string{stampOf(c.call, false)}
	case take:
		args = []string{token(c.call), lease, "1048576", "1", "", ttl, strconv.Itoa(base * 1000)}
	case commit:
		lasts, asked := ttl, s.answers[c.mark]
		if c.tombstone {
			lasts, asked = keeps, ""
		}
		args = []string{token(c.call), s.answers[c.stamp], lasts, c.written(s), asked}
	}
	if c.kind.inTime() {
		sent := "0"
		if c.known != Unknown {
			sent = c.known.says(c.sent)
		}
		most, arrived := within, c.arrived
		if s.switches.ComesLate {
			most = 2 * within
		}
		if s.switches.ArrivesWhenSent {
			arrived = c.sent
		}
		first := []string{sent, strconv.Itoa(most) + "000000"}
		if c.kind == login {
			first = append(first, c.known.says(arrived))
		}
		args = append(first, args...)
	}
	all := append([]string{"EVAL", s.texts[c.kind], strconv.Itoa(len(keys))}, keys...)
	return append(append(all, "1"), args...) // 1 is the number of the call
}

// written is what a commit writes: a user's record with the epoch that it has.
func (c *command) written(s *server) string {
	text := c.record()
	if !c.guest && !c.tombstone {
		text = strings.Replace(text, "000000000000000", s.answers[c.mark][:15], 1)
	}
	return text
}

func bool01(set bool) seconds {
	if set {
		return 1
	}
	return 0
}

func (c *command) String() string {
	about := name(c.session)
	by := fmt.Sprintf(", by a clock that is %v", c.known)
	switch c.kind {
	case login:
		text := fmt.Sprintf("login %s of a request of %d s", about, c.arrived)
		if c.old != none {
			text += " for " + name(c.old)
		}
		return text + by
	case create:
		return "create " + about + by
	case endAll:
		text := "EndAll " + name(c.call)
		if c.old != none {
			text += " but " + name(c.old)
		}
		return text + by
	case end:
		return "End of " + about
	case take:
		return fmt.Sprintf("take of %s by %s", about, name(c.call))
	case commit:
		if c.tombstone {
			return fmt.Sprintf("commit by %s: %s is gone", name(c.call), about)
		}
		return fmt.Sprintf("commit by %s of %s", name(c.call), about)
	}
	return "drop of " + about
}

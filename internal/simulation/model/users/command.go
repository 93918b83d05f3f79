package users

import (
	"fmt"
	"strconv"
	"strings"
)

// Values that all commands share. Times are in seconds.
const (
	base     = 1_700_000_000 // Unix time: the model's time 0, while Redis's clock is right
	within   = 30            // the longest time that the library gives a command that must not come late
	timeout  = within        // of a round trip; for a command that must not come late, of all tries together
	started  = -10           // when the processes started
	ttl      = "43200000"    // ms of a session, longer than the model runs
	lifetime = ttl
	keeps    = "60000" // ms of a tombstone
	lease    = "10000"

	tag  = "latchkey:{useruseruseruser}"
	list = tag + ".list"
	mark = tag + ".user"

	nobody = "000000000000000" // the epoch of the mark if there is no session
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
	load
	claim
	kinds
)

// files has the script of each kind.
var files = [kinds]string{
	login:  "internal/records/login.lua",
	create: "internal/records/create.lua",
	endAll: "internal/records/endall.lua",
	end:    "internal/records/end.lua",
	take:   "internal/records/take.lua",
	commit: "internal/records/commit.lua",
	drop:   "internal/records/drop.lua",
	load:   "internal/records/load.lua",
	claim:  "internal/records/claim.lua",
}

// inTime reports whether a command may be executed only for a while after it was sent.
func (k kind) inTime() bool { return k <= endAll }

// A command is a command as it was sent.
type command struct {
	kind    kind
	call    uint8 // that has sent it
	session uint8 // the session that it is about
	guest   bool  // the session is a guest's

	// For a command that must not come late:
	known   Clock   // Redis's clock, as the process knows it
	sent    seconds // when it was sent
	arrived seconds // login: when its request arrived
	ahead   seconds // by how much known is ahead of Redis's clock
	old     uint8   // login: the session that it replaces; endAll: the session that stays; or none
	most    int8    // login: see ARGV[10]
	refuse  bool
	instead uint8 // login: the session that it replaces if that is unclaimed, or none
	pruned  bool  // login: see ARGV[14]

	below     sessions // claim: what it may end
	stamp     textID   // commit: of the record that it replaces
	mark      textID   // as it was read
	tombstone bool
}

// A commandID is a command's number; 0 is none.
type commandID uint16

// A textID is the number of a text that Redis has returned; 0 is "".
type textID uint16

const none = 255

// seconds are a time or a duration in the model.
type seconds int16

// A Clock is what a process knows of Redis's clock: by how many seconds that is ahead of the model's.
type Clock seconds

// Unknown is a Clock of which the process knows nothing yet.
const Unknown Clock = -1 << 15

// Clocks are the clocks of the processes.
type Clocks [processes]Clock

// says returns what the clock says at t, as scripts expect it.
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

// memberOr returns the member of a session, or "" if there is none.
func memberOr(session uint8) string {
	if session == none {
		return ""
	}
	return member(session)
}

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

// epochOf is the epoch in the command of a login.
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
	if !c.guest && (c.kind == login || c.kind == end || c.kind == drop || c.kind == claim || c.tombstone) {
		keys = append(keys, list)
	}
	switch c.kind {
	case login:
		refuse := strconv.Itoa(int(bool01(c.refuse)))
		args = []string{stampOf(c.call, false), c.record(), ttl, lifetime, memberOr(c.old), strconv.Itoa(int(c.most)), refuse, epochOf(c.call), memberOr(c.instead)}
		if c.pruned {
			args = append(args, "1")
		}
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
	case load:
		args = []string{"", ttl, "1048576", "0", lease, strconv.Itoa(base * 1000)}
	case claim:
		for old := range uint8(maxCalls) {
			if c.below.has(old) {
				keys = append(keys, recordKey(old, false))
			}
		}
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

// written is what a commit writes: a user's record with its epoch.
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
		if c.instead != none {
			text += " instead of " + name(c.instead)
		}
		if c.pruned {
			text += " once more"
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
	case load:
		return fmt.Sprintf("load of %s by %s", about, name(c.call))
	case claim:
		return fmt.Sprintf("claim of %s by %s", about, name(c.call))
	}
	return "drop of " + about
}

package model

import (
	"fmt"
	"strconv"
)

// Values that all calls share.
const (
	epoch     = 1_700_000_000_000 // Unix ms: now, always
	lease     = "10000"
	ttl       = "1800000"
	keepsGone = "60000"
	maxBytes  = "1048576"
	record    = "latchkey:{id}"
	lock      = record + ".lock"
	queue     = record + ".lock.queue"
	stages    = record + ".new"
	headBytes = 40 // of a staged record, which its commit contains
)

// A kind is a script, or a command.
type kind uint8

const (
	take kind = iota
	commit
	giveBack
	quit
	save  // without the lock
	kinds // the kinds above are scripts

	seize // SET of the lock, if it is free
	stage // SET of a large record, for a commit to rename
)

// The replies of a commit, besides success.
const (
	replyLost      = 0
	replyLostAgain = 3 // but an earlier try may have been executed, or may be executed later
	replyUnstaged  = 4 // an error: the staged record does not exist
)

// A form is the kind of record that a commit writes.
type form uint8

const (
	nothing form = iota
	data
	tombstone
)

// A staging is where a commit finds its record.
type staging uint8

const (
	unstaged staging = iota // in its arguments
	apart                   // at a key that has the stamp in its name
	shared                  // at the same key as all others
)

// A call is a script or a command, with its arguments.
type call struct {
	kind    kind
	process uint8
	token   token
	to      token
	place   place
	base    token
	form    form
	stamp   token
	chain   chain // of the record, or of the one that ends
	touches bool
	staging staging
	then    callID // the call behind it in the same write
	again   bool   // an earlier try may have been executed, or may be executed later

	// Only the checks use these.
	on      chain // the chain of the record that it replaces
	carries uint8 // the requests whose versions the record has
}

// A callID is a call's number; 0 is none.
type callID uint16

// id interns c.
func (s *server) id(c call) callID {
	id, ok := s.ids[c]
	if !ok {
		s.calls = append(s.calls, c)
		id = callID(len(s.calls) - 1)
		s.ids[c] = id
	}
	return id
}

// stagedKey is the key at which the record of c is staged.
func (c call) stagedKey() string {
	if c.staging == shared {
		return stages
	}
	return stages + "." + c.stamp.stamp()
}

// command returns c as Redis gets it. text is the text of the script.
func (c call) command(text string) []string {
	switch c.kind {
	case seize:
		return []string{"SET", lock, c.token.text(), "NX", "PX", lease}
	case stage:
		return []string{"SET", c.stagedKey(), c.record(), "PX", keepsGone}
	}
	return append([]string{"EVAL", text}, c.args()...)
}

// args returns the arguments of EVAL behind the text of the script.
func (c call) args() []string {
	switch c.kind {
	case take:
		return []string{"3", record, lock, queue, "1", c.token.text(), lease, maxBytes, "1", c.place.text(), ttl, strconv.Itoa(epoch)}
	case commit:
		text, lasts, number := c.record(), "", "1"
		if c.again {
			number = "-1"
		}
		if c.touches {
			lasts = ttl
		}
		if c.form == tombstone {
			lasts = keepsGone
		}
		args, staged := []string{"3", record, lock, queue}, ""
		if c.staging != unstaged {
			args, text, staged = []string{"4", record, lock, queue, c.stagedKey()}, text[:headBytes], "1"
		}
		return append(args, number, c.token.text(), c.base.stamp(), lasts, text, "", c.to.text(), lease, "", staged)
	case giveBack:
		return []string{"2", lock, queue, "1", c.token.text(), "0"}
	case save:
		number := "1"
		if c.again {
			number = "-1"
		}
		return []string{"3", record, lock, queue, number, c.base.stamp(), c.record(), ttl}
	}
	return []string{"2", lock, queue, "1", c.place.text()}
}

// record is the record that c writes, in the form of internal/records/record.go.
func (c call) record() string {
	head := `{"v":2,"s":"` + c.stamp.stamp() + `",`
	switch c.form {
	case data:
		return head + `"c":` + strconv.Itoa(epoch) + `,"d":"` + c.chain.String() + `"}`
	case tombstone:
		return head + `"gone":` + strconv.Itoa(epoch) + `}`
	}
	return ""
}

func (c call) String() string {
	switch c.kind {
	case take:
		if c.place == 0 {
			return fmt.Sprintf("take for %v", c.token)
		}
		return fmt.Sprintf("take for %v, place %s", c.token, c.place.text())
	case commit:
		text := fmt.Sprintf("commit by %v, then %v", c.token, c.to)
		switch c.form {
		case data:
			text += fmt.Sprintf(", %v over %v: %q", c.stamp, c.base, c.chain)
		case tombstone:
			text += fmt.Sprintf(", %v over %v: gone", c.stamp, c.base)
		default:
			text += fmt.Sprintf(", read %v", c.base)
		}
		return text
	case giveBack:
		return fmt.Sprintf("release of %v", c.token)
	case save:
		return fmt.Sprintf("%v over %v without the lock: %q", c.stamp, c.base, c.chain)
	case seize:
		return fmt.Sprintf("SET of the lock for %v", c.token)
	case stage:
		return fmt.Sprintf("SET of %v, to be renamed: %q", c.stamp, c.chain)
	}
	return "quit of " + c.place.text()
}

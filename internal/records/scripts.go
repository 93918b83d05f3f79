package records

import (
	"bytes"
	"embed"
	"regexp"
	"strings"

	"github.com/a2139e8d/latchkey/internal/lease"
	"github.com/a2139e8d/latchkey/internal/scripting"
)

//go:embed *.lua
var texts embed.FS

var (
	takeScript       = newScript("take.lua")
	loadScript       = newScript("load.lua")
	commitScript     = newScript("commit.lua")
	optimisticScript = newScript("optimistic.lua")
	extendScript     = newScript("extend.lua")
	createScript     = newScript("create.lua")
	dropScript       = newScript("drop.lua")
	endScript        = newScript("end.lua")
	loginScript      = newScript("login.lua")
	endAllScript     = newScript("endall.lua")
	lostScript       = newScript("lost.lua")
)

var notOfUser = regexp.MustCompile(`(?m)^.* -- not of a user\n`)

// ofUser has the scripts for the sessions of users: see user.lua.
var ofUser = make(map[*scripting.Script]*scripting.Script)

// newScript returns the script in a file, with what it includes.
func newScript(file string) *scripting.Script {
	text, _ := texts.ReadFile(file) // cannot fail: it is embedded
	for _, included := range []string{"clock.lua", "mark.lua", "record.lua", "times.lua"} {
		part, _ := texts.ReadFile(included)
		text = bytes.Replace(text, []byte("-- include "+included+"\n"), part, 1)
	}
	script := lease.NewScript(string(text))
	user, _ := texts.ReadFile("user.lua")
	// A line that is for users' sessions takes the place of the one before it, if it says so.
	own := notOfUser.ReplaceAllString(string(text), "")
	own = strings.ReplaceAll(own, "-- of a user: ", "")
	const begin = "-- framed from here\n"
	if first, rest, framed := strings.Cut(own, begin); framed {
		own = first + begin + string(user) + rest
	} else {
		own = string(user) + own
	}
	ofUser[script] = lease.NewScript(own)
	return script
}

// What take.lua and load.lua say about a record, in their first value.
const (
	stateBusy      = 0 // another holds the lock; who, follows
	stateFound     = 1 // the record follows
	stateAbsent    = 2
	stateGone      = 3
	stateTooLarge  = 4 // the size follows, and after a take the record's revision
	stateWrongType = 5 // the key holds something that is not a string
)

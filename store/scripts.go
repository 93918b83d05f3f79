package store

import (
	"embed"
	"strings"

	"github.com/a2139e8d/latchkey/internal/lease"
	"github.com/a2139e8d/latchkey/internal/scripting"
)

//go:embed *.lua
var texts embed.FS

var (
	takeScript    = newScript("take.lua")
	loadScript    = newScript("load.lua")
	commitScript  = newScript("commit.lua")
	extendScript  = newScript("extend.lua")
	createScript  = newScript("create.lua")
	replaceScript = newScript("replace.lua")
	dropScript    = newScript("drop.lua")
)

// newScript returns the script in a file, with what it includes.
func newScript(file string) *scripting.Script {
	text, _ := texts.ReadFile(file) // cannot fail: it is embedded
	record, _ := texts.ReadFile("record.lua")
	return lease.NewScript(strings.Replace(string(text), "-- include record.lua\n", string(record), 1))
}

// What take.lua and load.lua say about a record, in their first value.
const (
	stateBusy      = 0 // another holds the lock; who, follows
	stateFound     = 1 // the record follows
	stateAbsent    = 2
	stateGone      = 3
	stateTooLarge  = 4 // the size follows, and after a take the record's name
	stateWrongType = 5 // the key holds something that is not a string
)

package store

import (
	_ "embed"
	"strings"

	"github.com/a2139e8d/latchkey/internal/lease"
	"github.com/a2139e8d/latchkey/internal/scripting"
)

var (
	//go:embed record.lua
	recordText string
	//go:embed take.lua
	takeText string
	//go:embed load.lua
	loadText string
	//go:embed commit.lua
	commitText string
	//go:embed extend.lua
	extendText string
	//go:embed create.lua
	createText string
	//go:embed replace.lua
	replaceText string
	//go:embed drop.lua
	dropText string

	takeScript    = newScript(takeText)
	loadScript    = newScript(loadText)
	commitScript  = newScript(commitText)
	extendScript  = newScript(extendText)
	createScript  = newScript(createText)
	replaceScript = newScript(replaceText)
	dropScript    = newScript(dropText)
)

// newScript returns a script with what it includes.
func newScript(text string) *scripting.Script {
	return lease.NewScript(strings.Replace(text, "-- include record.lua\n", recordText, 1))
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

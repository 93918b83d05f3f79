package users

import (
	"fmt"
	"slices"
	"strings"
)

const (
	maxCalls    = 4
	processes   = 2  // A and B are in the first, C and D in the second
	maxCommands = 16 // that were sent
)

func process(call uint8) uint8 { return call / 2 }

func name(call uint8) string { return string(rune('A' + call)) }

// A word is the kind of a call. The other session is the last one that a call before it begins.
type word struct {
	begins  bool // a session, which has the name of the call
	guest   bool // the session is a guest's
	needs   bool // the other session, which has begun
	first   part
	most    int8 // sessions of the user; 0: any number
	refuse  bool // sessions beyond most, instead of ending old ones
	spares  bool // the other session
	renames bool // gives the other session, a user's, a new ID
	instead bool // a login that replaces the other session if that is unclaimed
}

var words = map[string]word{
	"login":         {begins: true, first: logsIn},
	"login-max":     {begins: true, first: logsIn, most: 1},
	"login-refuse":  {begins: true, first: logsIn, most: 1, refuse: true},
	"login-two":     {begins: true, first: logsIn, most: 2},
	"again":         {begins: true, first: logsIn, needs: true, instead: true},
	"again-max":     {begins: true, first: logsIn, needs: true, instead: true, most: 1},
	"again-refuse":  {begins: true, first: logsIn, needs: true, instead: true, most: 1, refuse: true},
	"again-two":     {begins: true, first: logsIn, needs: true, instead: true, most: 2},
	"claim":         {needs: true, first: loads},
	"create":        {begins: true, guest: true, first: creates},
	"renew":         {begins: true, needs: true, first: takes, renames: true},
	"save":          {needs: true, first: takes},
	"end":           {needs: true, first: endsOne},
	"endall":        {first: endsAll},
	"endall-except": {first: endsAll, needs: true, spares: true},
}

// A part is a round trip of a call.
type part uint8

const (
	logsIn part = iota
	countsAgain
	creates
	endsAll
	endsOne
	endsSurplus
	takes
	commits
	loads
	claims
)

// A phase is the progress of a call.
type phase uint8

const (
	idle    phase = iota
	waiting       // before its next part
	sending
	done
	refused // for certain
	failed  // it is unknown whether it was done
)

type attempt struct {
	phase    phase
	part     part
	tries    uint8   // of the part that were refused because of the clock
	began    seconds // the part
	arrived  seconds // the request
	command  commandID
	sessions sessions // endAll: must have ended when it is done; login: are too many
	set      bool     // Redis's clock was set before the call
	stamp    textID   // of the record that take has read
	mark     textID
	below    sessions // that load has read
	pruned   bool     // login: it was told to take expired sessions off the list first
}

// A state is everything at one moment. States can be compared.
type state struct {
	db     dbID
	time   seconds
	skew   seconds // by how much Redis's clock is ahead
	clocks Clocks
	calls  [maxCalls]attempt
	sent   [maxCommands]commandID // sorted: each may be executed again at any time
	passed uint8                  // spans that have passed
	set    bool                   // Redis's clock was set

	// Only the checks know these.
	begun    sessions           // sessions that were alive once
	replaces [maxCalls]sessions // by session: what its login has replaced
	ended    seconds            // when the user's sessions were last ended, all or all but one
	once     uint8              // calls that have ended them
}

// spans are the times that may pass at once: a second; the longest that a command may be late; the life
// of a tombstone; and the time for which an EndAll is remembered.
var spans = [...]seconds{1, within, 60, 3600}

const never = -1 << 15

// A step is how a state becomes another.
type step struct {
	state
	m     *world
	bad   string // the rule that was broken
	story []string
}

func (n *step) says(format string, args ...any) {
	if n.m.telling {
		n.story = append(n.story, fmt.Sprintf(format, args...))
	}
}

func (n *step) breaks(format string, args ...any) {
	if n.bad == "" {
		n.bad = fmt.Sprintf(format, args...)
	}
}

func (n *step) view() *view { return &n.m.server.views[n.db] }

func (n *step) told() string { return strings.Join(n.story, "; ") }

// keep records that a command was sent.
func (n *step) keep(id commandID) {
	switch {
	case slices.Contains(n.sent[:], id):
	case !slices.Contains(n.sent[:], 0):
		n.breaks("the model has room for too few commands")
	default:
		n.sent[slices.Index(n.sent[:], 0)] = id
		n.sort()
	}
}

func (n *step) sort() {
	slices.SortFunc(n.sent[:], func(a, b commandID) int { return int(b) - int(a) })
}

// forget makes commands equal that differ only in when they were sent, if that was too long ago to
// matter.
func (n *step) forget() {
	for _, id := range slices.Clone(n.sent[:]) {
		c := n.m.server.commands[id]
		if id == 0 || !c.kind.inTime() || n.time <= c.sent+2*within {
			continue
		}
		c.known, c.ahead, c.sent = 0, 0, longAgo
		if c.kind == login && n.ended != never {
			c.arrived = n.ended - bool01(c.arrived < n.ended)
		} else {
			c.arrived = 0
		}
		n.sent[slices.Index(n.sent[:], id)] = 0
		n.keep(n.m.server.id(c))
	}
	n.sort()
}

// longAgo is the time at which these commands then count as sent.
const longAgo = -1000

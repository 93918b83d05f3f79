package jar

// rules are the rules of P4 that a test can break, to see what each of them is for.
type rules struct {
	oneCookie    bool // guests and members share a cookie, and a write with an ended ID is a 409
	dropDead     bool // a response that sets a guest's cookie deletes a dead member's cookie
	atOnce       bool // a session that gives way ends when the newer login is stored, not when that is claimed
	anyUser      bool // a login replaces the session of another user, too
	empty        bool // a session that gives way does not leave its content
	emptyRenew   bool // Renew begins a session if nothing is stored
	renewCounts  bool // MaxSessions counts a session that Renew has made, though nobody has come back with it
	linger       bool // a login or logout with a moved member's ID leaves the session alone that this has become
	loginKeeps   bool // Login keeps the ID of a guest's session
	refusePages  bool // a navigation with a moved ID is refused like a background request
	rememberKeep bool // Remember keeps the ID of a user's session
}

// A Limit is what [Course] takes of the options MaxSessions and RefuseLogin.
type Limit uint8

const (
	NoLimit Limit = iota // a user may have any number of sessions
	One                  // MaxSessions 1: a login ends the user's other session
	Refuse               // MaxSessions 1 and RefuseLogin: a login is refused if the user has another session
)

func (l Limit) String() string {
	return [...]string{"", "MaxSessions 1", "MaxSessions 1 and RefuseLogin"}[l]
}

package middleware

import (
	"errors"
	"fmt"
)

// errUnknownMode is answered where Options.Mode returns something else than the modes below.
var errUnknownMode = errors.New("middleware: Options.Mode has returned a value that is no Mode")

// A Mode is how a request uses its session.
type Mode int

const (
	// Exclusive opens the session before the handler runs and keeps it locked until the commit.
	Exclusive Mode = iota
	// ReadOnly reads the session without a lock, in one round trip to Redis. It sees what was
	// last saved, waits for nobody, and makes nobody wait. A change is an error at the commit.
	ReadOnly
	// Optimistic runs the handler on what was last saved, like ReadOnly, and saves what it has
	// changed, if nobody else has changed the session or holds it: in one more round trip. Else the
	// session is taken as in mode Exclusive, and if another has changed it, the handler runs a
	// second time, on what is stored by then; nothing is left of the first time, but what it has
	// changed in the values of the request's context, and informational answers. So what must not
	// happen twice, such as a mail, belongs behind session.Commit, after which there is no second
	// time (but maybe an error: store.ErrConflict), or into another mode. For GET, HEAD, OPTIONS and
	// TRACE; another method is an error. A request with a body, or inside other Sessions, is
	// Exclusive.
	Optimistic
	// Lazy does nothing until the handler calls session.Start, and is Exclusive
	// from there on. A Start that fails may be repeated; all calls together wait
	// for at most LockWait, and those that come later try once.
	Lazy
	// None leaves the request alone: for static files and health checks.
	None
)

var modeNames = [...]string{Exclusive: "Exclusive", ReadOnly: "ReadOnly", Optimistic: "Optimistic", Lazy: "Lazy", None: "None"}

// String returns the mode's name.
func (m Mode) String() string {
	if m < 0 || int(m) >= len(modeNames) {
		return fmt.Sprintf("Mode(%d)", int(m))
	}
	return modeNames[m]
}

package scripting

import (
	"errors"
	"fmt"
	"strings"

	"github.com/a2139e8d/latchkey/locker/transport"
)

const moving = "MOVED " // a node of a cluster says it of a key that another one serves

// refused returns the error where Redis has refused a command, and says what that means.
func refused(refusal error) error {
	text := refusal.Error()
	switch {
	case isFull(refusal):
		return fmt.Errorf("%w: it is full: %w", transport.ErrRefused, refusal)
	case strings.HasPrefix(text, moving):
		return fmt.Errorf("%w: it is a cluster, and this client does not know clusters: use rueidisstore.Open or goredisstore.New: %w",
			transport.ErrRefused, refusal)
	}
	return fmt.Errorf("%w: %w", transport.ErrRefused, refusal)
}

// Ambiguous reports whether err leaves open whether Redis did the work.
func Ambiguous(err error) bool {
	return errors.Is(err, transport.ErrUnavailable) && !errors.Is(err, transport.ErrRefused)
}

// Broken reports whether err is that of a connection that broke: what was sent may be sent again. A
// Redis that is silent has had its time, and a client that panics is a mistake to be seen.
func Broken(err error) bool {
	_, mistake := errors.AsType[panicked](err)
	return Ambiguous(err) && !isTimeout(err) && !mistake
}

// ErrExited is the error of a call that ended its goroutine.
var ErrExited = fmt.Errorf("%w: its client has called runtime.Goexit", transport.ErrUnavailable)

// ambiguous is an error, refused or not, after a try that may have been done.
type ambiguous struct{ error }

func (a ambiguous) Is(target error) bool {
	return target != transport.ErrRefused && errors.Is(a.error, target)
}
func (a ambiguous) As(target any) bool { return errors.As(a.error, target) }

// MayBeDone returns err, refused or not, as the error of what may have been done.
func MayBeDone(err error) error { return ambiguous{err} }

// Unanswered reports whether err is that of a Redis that did not answer in time, or put off for as
// long what it was asked.
func Unanswered(err error) bool { return isTimeout(err) && errors.Is(err, transport.ErrUnavailable) }

func isTimeout(err error) bool {
	var t interface{ Timeout() bool }
	return errors.As(err, &t) && t.Timeout()
}

// isFull reports whether Redis refuses what would need memory.
func isFull(refusal error) bool { return strings.HasPrefix(refusal.Error(), "OOM ") }

// isNoScript reports whether Redis says that it does not know the script of an EVALSHA.
func isNoScript(refusal error) bool { return strings.HasPrefix(refusal.Error(), "NOSCRIPT") }

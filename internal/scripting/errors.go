package scripting

import (
	"errors"
	"fmt"
	"strings"

	"github.com/a2139e8d/latchkey/locker/transport"
)

const moving = "MOVED " // a node of a cluster replies this to a key that another node serves

// Refused returns the error of a command that Redis has refused, and explains it.
func Refused(refusal error) error {
	refusal = WithoutArguments(refusal)
	switch {
	case isFull(refusal):
		return fmt.Errorf("%w: it is full: %w", transport.ErrRefused, refusal)
	case strings.HasPrefix(refusal.Error(), moving):
		return fmt.Errorf("%w: it is a cluster, and this client does not know clusters: "+
			"use rueidisstore.Open or goredisstore.New, or for locks goredisstore.NewClient: %w",
			transport.ErrRefused, refusal)
	case lacksRight(refusal):
		return fmt.Errorf("%w: the Redis user lacks a right, which ACL LOG names: %w", transport.ErrRefused, refusal)
	}
	return fmt.Errorf("%w: %w", transport.ErrRefused, refusal)
}

// WithoutArguments returns the error of a server without the arguments that a server repeats if it does not know a command:
// those of AUTH are a password, and those of EVAL may be a record.
func WithoutArguments(err error) error {
	if err == nil {
		return nil
	}
	text, _, repeats := strings.Cut(err.Error(), ", with args beginning with")
	if !repeats {
		return err
	}
	return discreet{err, text}
}

// A discreet error has a shorter text.
type discreet struct {
	error
	text string
}

func (d discreet) Error() string { return d.text }
func (d discreet) Unwrap() error { return d.error }

// lacksRight reports whether Redis has refused a command since its user may not run it, or not on that key. In a
// script Redis 7.0 does not say which command that was.
func lacksRight(refusal error) bool {
	text := refusal.Error()
	return strings.HasPrefix(text, "NOPERM ") || strings.Contains(text, "The user executing the script can't ") ||
		strings.Contains(text, "ACL failure in script")
}

// MaybeDone reports whether a round trip with this error may have been done.
func MaybeDone(err error) bool {
	return errors.Is(err, transport.ErrUnavailable) && !errors.Is(err, transport.ErrRefused)
}

// Broken reports whether err is the error of a connection that broke: the commands may be sent again. If Redis was
// silent, no time is left to send them again. A panic of the client is a mistake, and must not be hidden by a
// second try.
func Broken(err error) bool {
	_, mistake := errors.AsType[panicked](err)
	return MaybeDone(err) && !isTimeout(err) && !mistake
}

// ErrExited is the error of a call that ended its goroutine.
var ErrExited = fmt.Errorf("%w: its client has called runtime.Goexit", transport.ErrUnavailable)

// maybeDone wraps an error, even a refusal, of a round trip that an earlier try may have done.
type maybeDone struct{ error }

func (m maybeDone) Is(target error) bool {
	return target != transport.ErrRefused && errors.Is(m.error, target)
}
func (m maybeDone) As(target any) bool { return errors.As(m.error, target) }

// AsMaybeDone returns err as the error of a round trip that may have been done, even if err is a refusal.
func AsMaybeDone(err error) error { return maybeDone{err} }

// TimedOut reports whether Redis did not reply in time, or deferred the round trip for all of its time.
func TimedOut(err error) bool { return isTimeout(err) && errors.Is(err, transport.ErrUnavailable) }

func isTimeout(err error) bool {
	var t interface{ Timeout() bool }
	return errors.As(err, &t) && t.Timeout()
}

// isFull reports whether Redis has refused a command since its memory is full.
func isFull(refusal error) bool { return strings.HasPrefix(refusal.Error(), "OOM ") }

// isNoScript reports whether Redis does not know the script of an EVALSHA.
func isNoScript(refusal error) bool { return strings.HasPrefix(refusal.Error(), "NOSCRIPT") }

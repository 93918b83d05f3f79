package locker

import (
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode"
)

// An Owner is who holds a lock, as told in its key: a process, and what it is
// about. It is for people who look for a slow holder; nothing is decided by it.
type Owner struct {
	Host  string
	PID   int
	Label string    // see [WithLabel]
	Since time.Time // by the clock of Host
}

// String returns host/pid and the label, as in "web-3/4711 POST /cart".
func (o Owner) String() string {
	return strings.TrimSuffix(o.Host+"/"+strconv.Itoa(o.PID)+" "+o.Label, " ")
}

// A HeldError is an [ErrTimeout] that knows who had the lock: get it with
// [errors.As].
type HeldError struct {
	Owner Owner
	// For is how long the owner had held the lock, as the two hosts' clocks
	// tell it.
	For time.Duration
}

func (e *HeldError) Error() string {
	return fmt.Sprintf("lock is held by %s for %v", e.Owner, e.For)
}

// Unwrap returns [ErrTimeout].
func (e *HeldError) Unwrap() error { return ErrTimeout }

type labelKey struct{}

// WithLabel returns a context whose locks say what they are for, to whoever waits
// for them. The label is stored in Redis, so it must not be a secret. It is cut
// to 64 bytes, and what cannot be printed is replaced.
func WithLabel(ctx context.Context, label string) context.Context {
	return context.WithValue(ctx, labelKey{}, label)
}

// maxLabel is long enough for a route, short enough for every command.
const maxLabel = 64

// process is host/pid, the same for all locks.
var process = sync.OnceValue(func() string {
	host, err := os.Hostname()
	if err != nil || host == "" {
		host = "unknown"
	}
	return printable(strings.ReplaceAll(host, " ", "_")) + "/" + strconv.Itoa(os.Getpid())
})

// newToken returns a new token, which also tells who the holder is:
//
//	<26 random characters> <Unix ms> <host>/<pid> <label>
func newToken(label string, now time.Time) string {
	b := make([]byte, 0, 192) // longer than any but those of hosts with long names
	b = append(b, rand.Text()...)
	b = append(b, ' ')
	b = strconv.AppendInt(b, now.UnixMilli(), 10)
	b = append(b, ' ')
	b = append(b, process()...)
	if label != "" {
		b = append(b, ' ')
		b = append(b, printable(label)...)
	}
	return string(b)
}

// labelOf returns the label that WithLabel gave.
func labelOf(ctx context.Context) string {
	label, _ := ctx.Value(labelKey{}).(string)
	return label
}

// parseToken returns what a token says of its holder, or false for anything that
// is not a token.
func parseToken(token string) (Owner, bool) {
	id, rest, _ := strings.Cut(token, " ")
	since, rest, _ := strings.Cut(rest, " ")
	process, label, _ := strings.Cut(rest, " ")
	slash := strings.LastIndexByte(process, '/')
	if len(id) < 26 || slash < 0 {
		return Owner{}, false
	}
	ms, err := strconv.ParseInt(since, 10, 64)
	if err != nil {
		return Owner{}, false
	}
	pid, err := strconv.Atoi(process[slash+1:])
	if err != nil {
		return Owner{}, false
	}
	return Owner{Host: process[:slash], PID: pid, Label: label, Since: time.UnixMilli(ms)}, true
}

func millis(t time.Time) string { return strconv.FormatInt(t.UnixMilli(), 10) }

// held returns the error of a wait that ended while token had the lock.
func held(token string, now time.Time) error {
	owner, ours := parseToken(token)
	switch {
	case token == "":
		return ErrTimeout
	case !ours:
		return fmt.Errorf("%w: %w", ErrTimeout, ErrForeign)
	}
	// Whoever is a little ahead of us has held it for no time.
	return &HeldError{Owner: owner, For: max(0, now.Sub(owner.Since)).Round(time.Millisecond)}
}

// printable makes s fit for a line of a log.
func printable(s string) string {
	s = strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return unicode.ReplacementChar
	}, s)
	if len(s) > maxLabel {
		s = strings.ToValidUTF8(s[:maxLabel], "")
	}
	return s
}

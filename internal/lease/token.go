package lease

import (
	"crypto/rand"
	"encoding/base32"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode"
)

// An Owner is what a token says about its holder; see locker.Owner.
type Owner struct {
	Host  string
	PID   int
	Label string
	Since time.Time
}

// String is documented in package locker.
func (o Owner) String() string {
	return strings.TrimSuffix(o.Host+"/"+strconv.Itoa(o.PID)+" "+o.Label, " ")
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

// IDLength is that of a token's first part, which alone makes it unique.
const IDLength = 16

// NewID returns 80 random bits as IDLength letters and digits. It need not be secret, only unique:
// of all that ever had one lock, or wrote one record. Of a million, two are equal with a
// probability of 10^-12.
func NewID() string { return string(appendID(nil)) }

func appendID(b []byte) []byte {
	var bits [IDLength * 5 / 8]byte
	_, _ = rand.Read(bits[:]) // never fails: crypto/rand ends the program first
	return base32.StdEncoding.AppendEncode(b, bits[:])
}

// newToken returns a new token, which also says who the holder is:
//
//	<id> <Unix ms> <host>/<pid> <label>
func newToken(label string, now time.Time) string {
	b := make([]byte, 0, 192) // longer than any but those of hosts with long names
	b = appendID(b)
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

// ParseToken returns what a token says about its holder, or false for anything that is not a token.
func ParseToken(token string) (Owner, bool) {
	id, rest, _ := strings.Cut(token, " ")
	since, rest, _ := strings.Cut(rest, " ")
	process, label, _ := strings.Cut(rest, " ")
	slash := strings.LastIndexByte(process, '/')
	ms, err1 := strconv.ParseInt(since, 10, 64)
	pid, err2 := strconv.Atoi(process[slash+1:])
	if len(id) < IDLength || slash < 0 || err1 != nil || err2 != nil {
		return Owner{}, false
	}
	return Owner{Host: process[:slash], PID: pid, Label: label, Since: time.UnixMilli(ms)}, true
}

// isPlain reports whether s is printable ASCII, as nearly every label is.
func isPlain(s string) bool {
	for i := range len(s) {
		if s[i] < ' ' || s[i] > '~' {
			return false
		}
	}
	return true
}

// printable makes s fit for a line of a log.
func printable(s string) string {
	if len(s) <= maxLabel && isPlain(s) {
		return s
	}
	b := make([]rune, 0, maxLabel)
	for _, r := range s {
		if !unicode.IsPrint(r) {
			r = unicode.ReplacementChar
		}
		b = append(b, r)
	}
	if s = string(b); len(s) > maxLabel {
		s = strings.ToValidUTF8(s[:maxLabel], "")
	}
	return s
}

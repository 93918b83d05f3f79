package lease

import (
	"crypto/rand"
	"encoding/base32"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/a2139e8d/latchkey/internal/excerpt"
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
	return excerpt.Printable(strings.ReplaceAll(host, " ", "_"), maxLabel) + "/" + strconv.Itoa(os.Getpid())
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
		b = append(b, excerpt.Printable(label, maxLabel)...)
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
	return Owner{Host: excerpt.Of(process[:slash]), PID: pid, Label: excerpt.Of(label), Since: time.UnixMilli(ms)}, true
}

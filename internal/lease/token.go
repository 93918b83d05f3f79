package lease

import (
	"crypto/rand"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/a2139e8d/latchkey/internal/excerpt"
)

// An Owner is the holder of a lock, as its token describes it; see locker.Owner.
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

// process is host/pid. It is the same for all locks.
var process = sync.OnceValue(func() string {
	host, err := os.Hostname()
	if err != nil || host == "" {
		host = "unknown"
	}
	return excerpt.Label(strings.ReplaceAll(host, " ", "_")) + "/" + strconv.Itoa(os.Getpid())
})

// ThisProcess returns the owner of a lock of this process, without a label.
func ThisProcess() Owner { return here() }

// Elsewhere returns the process of an owner, or "" if it is this one.
func Elsewhere(o Owner) string {
	if this := here(); o.Host == this.Host && o.PID == this.PID {
		return ""
	}
	o.Label = ""
	return o.String()
}

var here = sync.OnceValue(func() Owner {
	host, _, _ := strings.Cut(process(), "/")
	return Owner{Host: host, PID: os.Getpid()}
})

// IDLength is the length of a token's ID, its first part, which alone makes the token unique.
const IDLength = 16

// A Bond is the beginning of all IDs of one lock: four letters or digits that are derived from the lock's key. It shows
// whether an ID belongs to another key, with one error in 15 million, and makes no ID longer.
type Bond [4]byte

// BondOf returns the bond of the lock at the key that the parts make. It is FNV-1a in letters and digits. Sessions need
// no better hash, since their IDs are hashes already.
func BondOf(parts ...string) (bond Bond) {
	sum := uint64(14695981039346656037)
	for _, part := range parts {
		for i := range len(part) {
			sum = (sum ^ uint64(part[i])) * 1099511628211
		}
	}
	sum ^= sum >> 32 // the upper bits are the better ones
	for i := range bond {
		bond[i] = idLetters[sum%uint64(len(idLetters))]
		sum /= uint64(len(idLetters))
	}
	return bond
}

// BondIn returns the bond that a token or an ID begins with.
func BondIn(token string) (bond Bond) {
	copy(bond[:], token)
	return bond
}

// NewID returns IDLength letters and digits: a bond, and 71 random bits. An ID need not be secret, but must be unique
// among all IDs that one lock or one record ever had. Among a million IDs, two are equal with a probability of 10^-9.
func NewID(bond Bond) string { return string(appendID(make([]byte, 0, IDLength), bond)) }

const idLetters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"

func appendID(b []byte, bond Bond) []byte {
	var bits [IDLength - len(bond)]byte
	_, _ = rand.Read(bits[:]) // never fails: crypto/rand ends the program first
	b = append(b, bond[:]...)
	for _, n := range bits {
		b = append(b, idLetters[int(n)%len(idLetters)]) // some letters are a little likelier
	}
	return b
}

// NewToken returns a new token for the lock with this bond. It also describes the holder:
//
//	<id> <Unix ms> <host>/<pid> <label>
func NewToken(bond Bond, label string, now time.Time) string {
	b := make([]byte, 0, 192) // longer than any but those of hosts with long names
	b = appendID(b, bond)
	b = append(b, ' ')
	b = strconv.AppendInt(b, now.UnixMilli(), 10)
	b = append(b, ' ')
	b = append(b, process()...)
	if label != "" {
		b = append(b, ' ')
		b = append(b, excerpt.Label(label)...)
	}
	return string(b)
}

// ParseToken returns the holder that a token describes. It returns false if the text is not a token.
func ParseToken(token string) (Owner, bool) {
	id, rest, _ := strings.Cut(token, " ")
	digits, rest, _ := strings.Cut(rest, " ")
	process, label, _ := strings.Cut(rest, " ")
	slash := strings.LastIndexByte(process, '/')
	if len(id) < IDLength || slash < 0 {
		return Owner{}, false
	}
	ms, err1 := strconv.ParseInt(digits, 10, 64)
	pid, err2 := strconv.Atoi(process[slash+1:])
	since := time.UnixMilli(ms)
	if year := since.UTC().Year(); err1 != nil || err2 != nil || year < 1 || year > 9999 { // JSON has no other years
		return Owner{}, false
	}
	return Owner{Host: excerpt.Of(process[:slash]), PID: pid, Label: excerpt.Of(label), Since: since}, true
}

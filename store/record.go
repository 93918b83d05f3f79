package store

import (
	"bytes"
	"crypto/sha1"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/a2139e8d/latchkey/internal/lease"
	"github.com/a2139e8d/latchkey/internal/scripting"
)

// A Record is a session as it is stored.
type Record struct {
	Data    []byte    // what was saved
	Created time.Time // when the session began, to the millisecond
	// Memory is that of the Hold that has saved it, if that was in this process a moment ago: Data
	// in another form, so that it need not be decoded.
	Memory any

	name string // see recordName
}

// keys returns the keys of a session: its record, its lock, and the queue for that.
func (s *Store) keys(id string) []string {
	queue := s.options.Prefix + "{" + id + "}.lock.queue"
	lock := strings.TrimSuffix(queue, ".queue")
	return []string{strings.TrimSuffix(lock, ".lock"), lock, queue}
}

// The stored form is one line of JSON whose head is fixed to the byte, so that
// scripts can read it with a pattern and people with redis-cli:
//
//	{"v":2,"s":"<stamp>","c":<Unix ms of its creation>,"d":{…}}
//
// or, for an id that was ended, the tombstone:
//
//	{"v":2,"s":"<stamp>","gone":<Unix ms>}
//
// The stamp is the token of the writer. Another format gets another v. A process that does not know it refuses the
// record instead of guessing.
const head = `{"v":2,"s":"`

// formatRecord returns the stored form of a record that token writes.
func formatRecord(token string, created time.Time, data []byte) []byte {
	b := make([]byte, 0, len(data)+96)
	b = append(b, head...)
	b = append(b, token...)
	b = append(b, `","c":`...)
	b = strconv.AppendInt(b, created.UnixMilli(), 10)
	b = append(b, `,"d":`...)
	b = append(b, data...)
	return append(b, '}')
}

func formatTombstone(token string, now time.Time) []byte {
	return fmt.Appendf(nil, `%s%s","gone":%d}`, head, token, now.UnixMilli())
}

// parseRecord is the inverse of formatRecord, and accepts nothing else. Whether
// the data makes sense is for package session to say. The error wraps ErrCorrupt, and comes
// with the record's name.
func parseRecord(b []byte) (Record, error) {
	r := Record{name: recordName(b)}
	rest, ok := bytes.CutPrefix(b, []byte(head))
	if !ok {
		return r, fmt.Errorf("%w: its head is not that of format 2", ErrCorrupt)
	}
	stamp, rest, ok := bytes.Cut(rest, []byte(`","c":`))
	if !ok || string(stamp) != r.name && !isToken(stamp) {
		return r, fmt.Errorf("%w: no creation time", ErrCorrupt)
	}
	digits, rest, ok := bytes.Cut(rest, []byte(`,"d":`))
	created, err := strconv.ParseInt(string(digits), 10, 64)
	if !ok || err != nil || digits[0] < '0' || digits[0] == '0' && len(digits) > 1 {
		return r, fmt.Errorf("%w: creation time is not a number", ErrCorrupt)
	}
	data, ok := bytes.CutSuffix(rest, []byte("}"))
	if !ok || len(data) == 0 {
		return r, fmt.Errorf("%w: it is cut off", ErrCorrupt)
	}
	r.Data, r.Created = data, time.UnixMilli(created)
	return r, nil
}

const (
	stampLength = lease.IDLength // the scripts know it, and the length of head
	foreignName = "foreign"      // the name of what is no string; see record.lua
)

// recordName names a stored record as record.lua does: by its stamp, or where it has none, by its
// SHA-1. Since each write chooses a new stamp, a record that has the same name is the same one.
func recordName(b []byte) string {
	rest, ok := bytes.CutPrefix(b, []byte(head))
	stamp, _, _ := bytes.Cut(rest, []byte(`"`))
	if !ok || len(stamp) != stampLength || !isToken(stamp) {
		sum := sha1.Sum(b) // what Redis can compute, too; nobody gains by a collision
		return hex.EncodeToString(sum[:])
	}
	return string(stamp)
}

// isToken reports whether b can be a stamp: what the scripts' %w+ matches.
func isToken(b []byte) bool {
	for _, c := range b {
		if (c < '0' || c > '9') && (c < 'A' || c > 'Z') && (c < 'a' || c > 'z') {
			return false
		}
	}
	return len(b) > 0
}

// record returns the stored form, unless it is too large.
func (t Terms) record(token string, created time.Time, data []byte) ([]byte, error) {
	record := formatRecord(token, created, data)
	if len(record) > t.MaxBytes {
		return nil, fmt.Errorf("%w: the record would have %d bytes, MaxBytes is %d", ErrTooLarge, len(record), t.MaxBytes)
	}
	return record, nil
}

// found reads the reply of load.lua or take.lua: the record as it is stored, where it is a
// string of permitted size.
func found(reply scripting.Reply) ([]byte, error) {
	switch state, _ := reply.IntAt(0); state {
	case stateFound:
		if text, ok := reply.BytesAt(1); ok {
			return text, nil
		}
	case stateAbsent:
		return nil, ErrNotFound
	case stateGone:
		return nil, ErrGone
	case stateTooLarge:
		if size, ok := reply.IntAt(1); ok {
			return nil, fmt.Errorf("%w: the stored record has %d bytes", ErrTooLarge, size)
		}
	case stateWrongType:
		return nil, fmt.Errorf("%w: its key holds another Redis type", ErrCorrupt)
	}
	return nil, lease.Unexpected(reply)
}

package records

import (
	"bytes"
	"crypto/cipher"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/a2139e8d/latchkey/internal/scripting"
)

// # The user in the record
//
// The user and the device are part of the data, so that they are encrypted with it. In the record of a user's
// session, the data is
//
//	["<device>","<user>",<data>]
//
// The device comes first, so that the beginning of the record has all that ListUser shows.

// appendDevice appends the beginning of this array.
func (r Record) appendDevice(b []byte) []byte {
	return append(appendQuoted(append(b, '['), r.Device), ',')
}

// appendQuoted appends s as JSON, exactly as [encoding/json] does.
func appendQuoted(b []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || strings.IndexByte(`"\<>&`, c) >= 0 {
			quoted, _ := json.Marshal(s) // no string fails
			return append(b, quoted...)
		}
	}
	b = append(b, '"')
	b = append(b, s...)
	return append(b, '"')
}

var errNoUser = fmt.Errorf("%w: it does not name its user", ErrCorrupt)

// cutDevice is the inverse of appendDevice. The part begins at byte at of a record, and is sealed with seal,
// unless seal is nil. The next part begins at byte next.
func cutDevice(text []byte, at int, seal cipher.AEAD) (device string, next int, err error) {
	begins, next := text[at:], len(text)
	if seal != nil {
		begins, next, err = openDevice(seal, text, at)
		if err != nil {
			return "", at, err
		}
	}
	rest, opened := bytes.CutPrefix(begins, []byte("["))
	device, rest, ok := cutQuoted(rest)
	if !opened || !ok || seal != nil && len(rest) > 0 {
		return "", at, errNoUser
	}
	return device, next - len(rest), nil
}

// cutUser cuts off the user in front of the data, and the bracket behind it.
func cutUser(b []byte) (user string, data []byte, err error) {
	user, rest, ok := cutQuoted(b)
	data, closed := bytes.CutSuffix(rest, []byte("]"))
	if !ok || !closed || user == "" {
		return "", nil, errNoUser
	}
	return user, data, nil
}

// UserIn returns the user of a session from the beginning of its record. If the record is sealed, text must be all of
// it. The error wraps [ErrCorrupt].
func (s *Engine) UserIn(id string, text []byte) (user string, err error) {
	_, at, seal, err := parseBeginning(text, s.form(id))
	if err != nil {
		return "", err
	}
	data := text[at:]
	if seal != nil {
		data, err = open(seal, bytes.TrimSuffix(data, []byte("}")), text[:at])
	}
	if err != nil {
		return "", err
	}
	user, _, ok := cutQuoted(data)
	if !ok || user == "" {
		return "", errNoUser
	}
	return user, nil
}

// MaxDevice is the size in bytes of the longest Record.Device, as a JSON string, that is stored. A longer one
// is cut.
const MaxDevice = 256

// shortened returns the longest beginning of device that fits MaxDevice.
func shortened(device string) string {
	var room [16]byte
	for at, size := 0, 0; at < len(device); {
		_, n := utf8.DecodeRuneInString(device[at:])
		size += len(appendQuoted(room[:0], device[at:at+n])) - len(`""`)
		if size > MaxDevice {
			return device[:at]
		}
		at += n
	}
	return device
}

// cutQuoted cuts off a JSON string and the comma behind it.
func cutQuoted(b []byte) (s string, rest []byte, ok bool) {
	end := 1
	for end < len(b) && b[end] != '"' {
		if b[end] == '\\' {
			end++
		}
		end++
	}
	if end+1 >= len(b) || b[0] != '"' || b[end+1] != ',' {
		return "", nil, false
	}
	if quoted := b[1:end]; bytes.IndexByte(quoted, '\\') < 0 {
		s = string(quoted)
	} else if json.Unmarshal(b[:end+1], &s) != nil {
		return "", nil, false
	}
	return s, b[end+2:], true
}

// # The epoch

// An epoch is 15 digits. It is practically never used twice: 50 bits are random, and a user has few epochs.
const (
	epochDigits = 15
	noEpoch     = "000000000000000" // login.lua replaces it by the right epoch
)

func newEpoch() string {
	const least = 100_000_000_000_000
	return strconv.FormatInt(least+int64(scripting.Chance()*(8*least)), 10)
}

// In the head of a record the epoch stands behind the creation time, before the session's own timeouts. When
// the record is first written, only Redis knows the epoch. So sealing leaves the epoch out: see withoutEpoch.
const epochMark = `,"g":`

// cutEpoch cuts off an epoch with its mark.
func cutEpoch(b []byte) (epoch string, rest []byte, ok bool) {
	digits := b[len(epochMark):]
	if len(digits) < epochDigits {
		return "", b, false
	}
	for _, c := range digits[:epochDigits] {
		if c < '0' || c > '9' {
			return "", b, false
		}
	}
	return string(digits[:epochDigits]), digits[epochDigits:], true
}

// withoutEpoch returns head with noEpoch in place of its epoch. The result may share head's memory.
func withoutEpoch(head []byte) []byte {
	at := bytes.Index(head, []byte(epochMark))
	if at < 0 || len(head) < at+len(epochMark)+epochDigits {
		return head
	}
	head = bytes.Clone(head)
	copy(head[at+len(epochMark):], noEpoch)
	return head
}

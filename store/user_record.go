package store

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/a2139e8d/latchkey/internal/scripting"
)

// # The user in the record
//
// What belongs to the user stands with the data, so that it is encrypted where these are: the
// record of a user's session has, in place of its data,
//
//	["<user>","<device>",<data>]

// wrap appends the beginning of that.
func (r *Record) wrap(b []byte) []byte {
	b = append(b, '[')
	b = appendQuoted(b, r.User)
	b = append(b, ',')
	b = appendQuoted(b, r.Device)
	return append(b, ',')
}

// appendQuoted appends s as JSON, as [encoding/json] does it.
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

// unwrap is the inverse of wrap, and of what comes behind the data.
func (r *Record) unwrap() error {
	rest, opened := bytes.CutPrefix(r.Data, []byte("["))
	rest, closed := bytes.CutSuffix(rest, []byte("]"))
	user, rest, ok := cutQuoted(rest)
	device, rest, okay := cutQuoted(rest)
	if !opened || !closed || !ok || !okay || user == "" {
		return fmt.Errorf("%w: it does not say whose it is", ErrCorrupt)
	}
	r.User, r.Device, r.Data = user, device, rest
	return nil
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

// An epoch is 15 digits. None is used twice, or so unlikely that it does not matter: 50 bits are
// random, and a user has few.
const (
	epochDigits = 15
	noEpoch     = "000000000000000" // login.lua puts the right one in its place
)

func newEpoch() string {
	const least = 100_000_000_000_000
	return strconv.FormatInt(least+int64(scripting.Chance()*(8*least)), 10)
}

// In the head of a record it stands behind the creation, before timeouts of its own. Since only
// Redis knows it when the record is written first, sealing leaves it out: see withoutEpoch.
const epochMark = `,"g":`

func (r *Record) appendEpoch(b []byte) []byte {
	if r.User == "" {
		return b
	}
	b = append(b, epochMark...)
	return append(b, cmp.Or(r.epoch, noEpoch)...)
}

// cutEpoch cuts off what appendEpoch has appended.
func cutEpoch(b []byte) (epoch string, rest []byte, ok bool) {
	digits, found := bytes.CutPrefix(b, []byte(epochMark))
	if !found {
		return "", b, true
	}
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

// withoutEpoch returns a head in which the epoch is not there yet. It may share head's memory.
func withoutEpoch(head []byte) []byte {
	at := bytes.Index(head, []byte(epochMark))
	if at < 0 || len(head) < at+len(epochMark)+epochDigits {
		return head
	}
	head = bytes.Clone(head)
	copy(head[at+len(epochMark):], noEpoch)
	return head
}

package records

import (
	"bytes"
	"encoding/base64"
	"strconv"
	"time"
)

// # An ID that has moved
//
// The tombstone of an ID that Renew has moved names its successor, behind the time of the move:
//
//	{"v":2,"s":"<revision>","gone":<Unix ms>,"to":"<id>"}
//
// With Encryption the successor is sealed, since it ties a guest to a user:
//
//	{"v":2,"s":"<revision>","gone":<Unix ms>,"sealed":"<base64url of key ID, nonce, ciphertext, tag>"}
//
// The tombstone is written when the successor is stored. A successor is no secret that opens a session, but
// only the code that knows why a visitor may be led there may follow it: see package middleware.

// ErrMoved: the session has got another ID. It is also an [ErrGone], since this ID is gone.
var ErrMoved error = new(Moved)

// A Moved is the error of an ID that a Renew has moved to another ID less than a minute ago. It is an [ErrMoved].
type Moved struct {
	To string // the new ID; "" if the tombstone is sealed with an unknown key
}

func (m *Moved) Error() string { return "session has got another ID" }

// Is makes errors.Is find ErrMoved and ErrGone.
func (m *Moved) Is(target error) bool { return target == ErrMoved || target == ErrGone }

const (
	toMark       = `,"to":"`
	sealedToMark = `,"sealed":"`
)

// nameSuccessor returns the part of a tombstone that names the new ID of the session with this box.
func nameSuccessor(b *box, to string) []byte {
	if b == nil || b.ring.writePlain {
		return append(append([]byte(toMark), to...), '"')
	}
	m := &b.ring.masters[0]
	sealed := b.with(m).Seal([]byte(m.id), nil, []byte(to), []byte(toMark))
	return append(base64.RawURLEncoding.AppendEncode([]byte(sealedToMark), sealed), '"')
}

// whyGone returns the error of an ID with this tombstone: a *Moved or ErrGone.
//
// A tombstone may outlive its minute: a plain read extends the time to live of whatever it reads, and its request may
// end before that is undone. So if it has more than a minute left, the time of the move counts, by Redis's clock, as now
// does.
func whyGone(tombstone []byte, left time.Duration, b *box, now time.Time) error {
	if left > tombstoneTime && goneSince(tombstone).Add(tombstoneTime+time.Second).Before(now) {
		return ErrGone
	}
	_, rest, moved := bytes.Cut(tombstone, []byte(toMark))
	if moved {
		if b != nil && !b.ring.acceptPlain {
			return &Moved{}
		}
		to, _, _ := bytes.Cut(rest, []byte(`"`))
		return &Moved{To: string(to)}
	}
	_, rest, moved = bytes.Cut(tombstone, []byte(sealedToMark))
	if !moved {
		return ErrGone
	}
	text, _, _ := bytes.Cut(rest, []byte(`"`))
	sealed, err := base64.RawURLEncoding.DecodeString(string(text))
	if err != nil || len(sealed) < keyIDBytes {
		return &Moved{}
	}
	seal, err := b.opener(sealed, true)
	if err != nil {
		return &Moved{}
	}
	to, err := seal.Open(nil, nil, sealed[keyIDBytes:], []byte(toMark))
	if err != nil {
		return &Moved{}
	}
	return &Moved{To: string(to)}
}

// goneSince returns the time of a tombstone.
func goneSince(tombstone []byte) time.Time {
	_, rest, _ := bytes.Cut(tombstone, []byte(`"gone":`))
	end := max(0, bytes.IndexAny(rest, ",}"))
	since, _ := strconv.ParseInt(string(rest[:end]), 10, 64) // 0: long ago
	return time.UnixMilli(since)
}

package records

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/a2139e8d/latchkey/internal/keep"
)

// # The sessions of a user
//
// A session that a user has logged in to has a public ID of two parts, TAG.ID. The tag stands for the user, and
// chooses the slot of a cluster. So everything of a user is in one slot:
//
//	<prefix>{TAG}:ID     the record; the lock and the queue with .lock and .lock.queue
//	<prefix>{TAG}.list   the list: a sorted set of IDs, each with the Unix ms at which it ends at the latest
//	<prefix>{TAG}.user   the mark: an epoch of 15 digits, and the IDs of sessions from earlier epochs that are
//	                     still alive. For an hour after EndUser also the time of that: see clock.go
//
// Each record has the epoch of its login. The session is alive if its record exists, and the mark has the
// same epoch or names the session. Every take, read and commit asks for the mark in the same round trip.
// Nearly always that costs one more key in an MGET, and a comparison. If a session is not alive, the script
// buries it (user.lua). So
//
//   - a script ends all sessions of a user, or all others, by writing another mark: one step, whatever their
//     number. From then on no request reads these sessions, and no holder's commit is done. A Renew that is
//     under way finds that the session it replaces is no longer on the list (login.lua).
//   - nothing needs repair after a crash: one script writes a record, its place on the list, and the mark. A
//     failover loses all of them together.
//   - a lost mark, evicted for example, ends the sessions of that user. The next mark has another epoch, so
//     none of them comes alive again. A lost list ends the sessions as soon as a login, ListUser or an end
//     asks for the list.
//   - nothing needs to be cleaned up. A login removes expired sessions from the list, and list and mark live
//     ten minutes longer than the last session can. An expired session stays on the list until then, with 80
//     bytes, and ListUser leaves it out.
//
// A tag is 96 bits, 16 characters, of the SHA-256 of prefix and user. So a guess at a user's name can be
// checked. If records are encrypted, the tag is an HMAC under a separate key, derived from the newest of
// Encryption.Keys, and no guess can be checked. While keys are changed, a user may have several tags.
const tagBytes = 12

// MaxUser is the size in bytes of the longest name of a user.
const MaxUser = keep.MaxUser

var errUser = fmt.Errorf("store: the name of a user must have 1 to %d bytes", MaxUser)

// ErrTooManySessions: the user has as many sessions as [Terms].MaxSessions allows.
var ErrTooManySessions = errors.New("the user has too many sessions")

// Tag returns the prefix of the IDs of the user's new sessions. An ID is the tag in base64url, 16 characters,
// a dot, and 11 more characters, 66 bits. IDs are short because Redis hashes and compares the keys a dozen
// times for a request: with twice the length a request costs Redis 4 % more.
func (s *Engine) Tag(user string) [tagBytes]byte { return s.tags(user)[0] }

// tags returns all tags that a session of the user may have, that of new sessions first.
func (s *Engine) tags(user string) (tags [][tagBytes]byte) {
	name := s.options.Prefix + "\x00" + user
	if s.ring != nil {
		for _, m := range s.ring.masters {
			tags = append(tags, m.tag(name))
		}
	}
	plain := sha256.Sum256([]byte(name))
	switch {
	case s.ring == nil || s.ring.writePlain:
		return slices.Insert(tags, 0, [tagBytes]byte(plain[:tagBytes]))
	case s.ring.acceptPlain:
		return append(tags, [tagBytes]byte(plain[:tagBytes]))
	}
	return tags
}

// Finds reports whether ListUser and EndUser look at the list that has the user's session with this ID. A session stays
// on the list of the key with which it began, also if it was saved with another one.
func (s *Engine) Finds(user, id string) bool {
	tag, _, _ := cutTag(id)
	return slices.ContainsFunc(s.tags(user), func(t [tagBytes]byte) bool {
		return base64.RawURLEncoding.EncodeToString(t[:]) == tag
	})
}

// newTagger returns a function that makes tags with a key.
func newTagger(key []byte) func(name string) [tagBytes]byte {
	return func(name string) [tagBytes]byte {
		mac := hmac.New(sha256.New, key)
		_, _ = mac.Write([]byte(name)) // no Hash fails
		return [tagBytes]byte(mac.Sum(nil)[:tagBytes])
	}
}

// nobody is the epoch in the mark of a user without sessions. No session that is stored has it.
const nobody = noEpoch

// alive reports whether the session with these keys and this epoch is alive according to its user's mark.
func alive(mark string, keys sessionKeys, epoch string) bool {
	record := keys.record.(string)
	return IsAlive(mark, record[strings.LastIndexByte(record, ':')+1:], epoch)
}

// IsAlive reports whether the session of a user with this ID, without the tag, and this epoch is alive according to
// the user's mark.
func IsAlive(mark, own, epoch string) bool {
	return epoch != "" && strings.HasPrefix(mark, epoch) || strings.Contains(mark, " "+own)
}

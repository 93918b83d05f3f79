package records

import (
	"bytes"
	"cmp"
	"crypto/cipher"
	"crypto/sha1"
	"encoding/hex"
	"fmt"
	"strconv"
	"time"

	"github.com/a2139e8d/latchkey/internal/lease"
)

// A Record is a session as it is stored.
type Record struct {
	Data    []byte    // what was saved
	Created time.Time // when the session began, to the millisecond
	Own     *Times    // its own timeouts; nil: it has none
	// User is the user of the session. Device is what the user's list shows about the device on which the
	// session began. Both are "" if the session's ID has no tag; see Tag.
	User, Device string
	// Content replaces Data, which is nil then, if another Hold of this process has just saved the record: a
	// content that was not encoded need not be decoded. See Encoded.
	Content Content

	revision string // identifies this record among all that the session ever had; see revisionOf
	epoch    string // of a user's session, see user_record.go

	unclaimed *below // not nil if nobody had come back with the session when it was read; it is not stored
}

// Encoded returns the saved data, from Data or from Content.
func (r Record) Encoded() []byte {
	if r.Content != nil {
		return r.Content.AppendTo(nil)
	}
	return r.Data
}

// A Content is data that will be saved. It is encoded only when it is sent: on a hot session, most versions
// are replaced before that. A Content never changes, and several goroutines may use it at once. If AppendTo
// panics, saving the Content fails with [ErrUnavailable].
type Content interface {
	// Size returns the size of the encoded form.
	Size() int
	// AppendTo appends the encoded form to b.
	AppendTo(b []byte) []byte
}

// encoded is a Content that is encoded already.
type encoded []byte

func (e encoded) Size() int                { return len(e) }
func (e encoded) AppendTo(b []byte) []byte { return append(b, e...) }

// The stored form is one line of JSON. Its head is fixed to the byte, so that scripts can read it with a
// pattern, and people with redis-cli:
//
//	{"v":2,"s":"<revision>","c":<Unix ms of its creation>,"d":{…}}
//
// Before the data come the session's own timeouts, if it has any (see timeouts.go), and before these the
// epoch of a user's session (see user_record.go).
//
// An ID that was ended has a tombstone:
//
//	{"v":2,"s":"<revision>","gone":<Unix ms>}
//
// If the ID has moved, the tombstone also names the new ID: see moved.go. For encrypted records see seal.go. Each write
// has a new revision: 16 letters and digits. Another format must have another v, at the same place. A process that does
// not know a format refuses the record instead of guessing, and says whether the format is a later one.
//
// If you add a field to the head: parseHead reads it, and so do three others. times.lua takes all up to the
// first d or e for timeouts, so no name has these letters, and "u" stays the last. user.lua looks for "g" right
// behind the creation. The operator's command has a pattern of its own, in cmd/latchkey/head.go. A record that
// older processes must be able to read needs the same v and no new field. A list reads the first listedBytes.
//
// # Whose a record is
//
// A revision begins with four characters that are derived from the session's key: see [lease.Bond]. So a
// process never takes another session's record for this session's, even if a person has copied the record to
// this key, or if it comes in the reply to another call. If the reply is known to be that of the call, such a
// record is [ErrCorrupt]: scripts return the number of their call, and a take its token. Plain reads do not
// show that. Then a script reads again, and returns the right record or finds it corrupt. If two plain reads of one
// session get each other's record, nothing shows that: each record was current while one of the two reads was
// under way, and a write on top of an older one is refused.
//
// Other replies have no such mark, and need none:
//
//   - Only scripts report that there is no record, or a tombstone. They do so for the key that they were
//     given.
//   - A user's mark comes in one reply with the record that it is compared with.
//   - The reply to PTTL, PEXPIRE or SET, if it is that of another call, affects three things only: whether a
//     script follows, which looks for itself; when a record expires that is not used meanwhile; and which
//     expiry Peek and ListUser report.
const head = `{"v":2,"s":"`

// formatRecord returns the stored form of a record with the given revision.
func formatRecord(revision string, created time.Time, data []byte) []byte {
	return Record{Data: data, Created: created, revision: revision}.text(nil)
}

// text returns the stored form. b seals it, unless b is nil or writes plain records.
func (r Record) text(b *box) []byte {
	if b != nil && !b.ring.writePlain {
		return b.seal(r)
	}
	text := r.appendHead(make([]byte, 0, r.size()), plainMark)
	if r.User != "" {
		text = r.appendDevice(text)
	}
	return append(r.appendData(text), '}')
}

// appendData appends the saved data and, before it, the user, behind the part that appendDevice has appended.
func (r Record) appendData(b []byte) []byte {
	if r.User != "" {
		b = append(appendQuoted(b, r.User), ',')
	}
	if r.Content != nil {
		b = r.Content.AppendTo(b)
	}
	b = append(b, r.Data...)
	if r.User != "" {
		b = append(b, ']')
	}
	return b
}

// size returns the size of the stored form before it is sealed, without encoding it.
func (r Record) size() int {
	var room [128]byte
	size := len(r.appendHead(room[:0], plainMark)) + len(r.Data) + len("}")
	if r.Content != nil {
		size += r.Content.Size()
	}
	if r.User != "" {
		size += len(appendQuoted(r.appendDevice(room[:0]), r.User)) + len(",]")
	}
	return size
}

// appendHead appends all that stands in front of the data. It ends with mark.
func (r Record) appendHead(b []byte, mark string) []byte {
	b = append(b, head...)
	b = append(b, r.revision...)
	b = append(b, `","c":`...)
	b = strconv.AppendInt(b, r.Created.UnixMilli(), 10)
	if r.User != "" {
		b = append(b, epochMark...)
		b = append(b, cmp.Or(r.epoch, noEpoch)...)
	}
	if r.Own != nil {
		b = r.Own.appendTo(b)
	}
	return append(b, mark...)
}

// formatTombstone returns a tombstone. to is the part that names the successor, or nil.
func formatTombstone(revision string, now time.Time, to []byte) []byte {
	return fmt.Appendf(nil, `%s%s","gone":%d%s}`, head, revision, now.UnixMilli(), to)
}

// A form is what all records of a session have in common.
type form struct {
	bond   lease.Bond // the first characters of their revisions
	ofUser bool
	box    *box // seals and opens them; nil: no encryption
}

// form returns the form of the session's records.
func (s *Engine) form(id string) form {
	_, _, ofUser := cutTag(id)
	return form{s.bond(id), ofUser, s.box(id)}
}

// bond returns the bond of the session's lock, which is also that of its records.
func (s *Engine) bond(id string) lease.Bond {
	if tag, rest, ofUser := cutTag(id); ofUser {
		return lease.BondOf(s.options.Prefix, "{", tag, "}:", rest, ".lock")
	}
	return lease.BondOf(s.options.Prefix, "{", id, "}.lock")
}

// newRevision returns a revision for a record of the session: 71 random bits, behind the bond of its key.
func (s *Engine) newRevision(id string) string { return lease.NewID(s.bond(id)) }

// parse is the inverse of Record.text, and accepts nothing else. It does not check the data; package session
// does. The error wraps ErrCorrupt, and the Record then has only its revision.
func parse(text []byte, f form) (Record, error) {
	r, at, seal, err := parseBeginning(text, f)
	if err != nil {
		return Record{revision: r.revision}, err
	}
	data, ok := bytes.CutSuffix(text[at:], []byte("}"))
	if !ok || len(data) == 0 {
		return Record{revision: r.revision}, errCutOff
	}
	if seal != nil {
		data, err = open(seal, data, text[:at])
		if err != nil {
			return Record{revision: r.revision}, err
		}
	}
	if f.ofUser {
		r.User, data, err = cutUser(data)
		if err != nil {
			return Record{revision: r.revision}, err
		}
	}
	r.Data = data
	return r, nil
}

// parseBeginning parses what stands before the data, or in a user's record before the user. The rest of text
// begins at byte at, and may be cut off. If the rest is sealed, seal opens it.
func parseBeginning(text []byte, f form) (r Record, at int, seal cipher.AEAD, err error) {
	r, at, sealed, err := parseHead(text, f.bond)
	if err == nil && (sealed || f.box != nil) {
		seal, err = f.box.opener(text[at:], sealed)
	}
	if err == nil && seal != nil {
		at += keyIDBytes
	}
	if err == nil && f.ofUser {
		r.Device, at, err = cutDevice(text, at, seal)
	}
	return r, at, seal, err
}

var errCutOff = fmt.Errorf("%w: it is cut off", ErrCorrupt)

// parseHead is parse for the head, which is never sealed. The rest begins at byte at.
func parseHead(text []byte, bond lease.Bond) (r Record, at int, sealed bool, _ error) {
	r.revision = revisionOf(text)
	rest, ok := bytes.CutPrefix(text, []byte(head))
	if !ok {
		return r, 0, false, errOfHead(text)
	}
	revision, rest, ok := bytes.Cut(rest, []byte(`","c":`))
	switch {
	case !ok || string(revision) != r.revision:
		return r, 0, false, fmt.Errorf("%w: its revision is malformed, or it has no creation time", ErrCorrupt)
	case lease.BondIn(r.revision) != bond:
		return r, 0, false, fmt.Errorf("%w: it is another session's", ErrCorrupt)
	}
	digits := rest[:max(0, bytes.IndexByte(rest, ','))]
	created, err := strconv.ParseInt(string(digits), 10, 64)
	if err != nil || digits[0] < '0' || digits[0] == '0' && len(digits) > 1 {
		return r, 0, false, fmt.Errorf("%w: creation time is not a number", ErrCorrupt)
	}
	if time.UnixMilli(created).UTC().Year() > 9999 { // JSON has no later times
		return r, 0, false, fmt.Errorf("%w: creation time is after the year 9999", ErrCorrupt)
	}
	rest = rest[len(digits):]
	if bytes.HasPrefix(rest, []byte(epochMark)) {
		r.epoch, rest, ok = cutEpoch(rest)
		if !ok {
			return Record{revision: r.revision}, 0, false, fmt.Errorf("%w: its epoch is malformed", ErrCorrupt)
		}
	}
	data, plain := bytes.CutPrefix(rest, []byte(plainMark))
	if !plain { // it has timeouts of its own, or is sealed
		r.Own, rest, ok = cutTimes(rest)
		data, plain = bytes.CutPrefix(rest, []byte(plainMark))
	}
	if !plain {
		data, sealed = bytes.CutPrefix(rest, []byte(sealedMark))
	}
	if !ok || !plain && !sealed {
		return Record{revision: r.revision}, 0, false, fmt.Errorf("%w: the part between its creation time and its data is malformed", ErrCorrupt)
	}
	r.Created = time.UnixMilli(created)
	return r, len(text) - len(data), sealed, nil
}

// errOfHead returns the error of a record whose head is not that of format 2.
func errOfHead(text []byte) error {
	const longest = 5 // digits
	rest, ours := bytes.CutPrefix(text, []byte(`{"v":`))
	digits, _, more := bytes.Cut(rest[:min(len(rest), longest+1)], []byte(","))
	if v, err := strconv.ParseUint(string(digits), 10, 32); ours && more && err == nil && v > 2 {
		return fmt.Errorf("%w: its format is %d, and this version knows format 2", ErrLaterFormat, v)
	}
	return fmt.Errorf("%w: its head is not that of format 2", ErrCorrupt)
}

const (
	revisionLength = lease.IDLength // the scripts know this length, and that of head
	foreignName    = "foreign"      // the revision of a value that is not a string; see record.lua
)

// revisionOf returns the revision of a stored record as record.lua does: that in its head or, if there is
// none, the SHA-1 of the value. Since each write chooses a new revision, two records with the same revision
// are the same.
func revisionOf(b []byte) string {
	rest, ok := bytes.CutPrefix(b, []byte(head))
	revision, _, _ := bytes.Cut(rest, []byte(`"`))
	ok = ok && len(revision) == revisionLength
	for _, c := range revision { // the characters that %w matches in the scripts
		ok = ok && ('0' <= c && c <= '9' || 'A' <= c && c <= 'Z' || 'a' <= c && c <= 'z')
	}
	if ok {
		return string(revision)
	}
	sum := sha1.Sum(b) // Redis can compute it, too; a collision is of no use to an attacker
	return hex.EncodeToString(sum[:])
}

// sizeOf returns the size of r's stored form, without encoding it.
func (s *Engine) sizeOf(r Record) int {
	size := r.size()
	if s.ring != nil {
		size += s.ring.overhead(&r)
	}
	return size
}

package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/a2139e8d/latchkey/internal/records"
	"github.com/a2139e8d/latchkey/store"
	"github.com/redis/rueidis"
)

const showAbout = `Shows a session, without prolonging it: when it began, was last used and ends,
its size, and its holder. Its values are only shown with --values. The time of
last use is only known if --ttl is the idle timeout of the program.
`

var errEnded = errors.New("it was ended a moment ago, or with others of its user")

// A session has what show knows of a session.
type session struct {
	Session   string          `json:"session"`
	User      string          `json:"user,omitempty"`
	Device    string          `json:"device,omitempty"`
	Created   time.Time       `json:"created"`
	LastUsed  *time.Time      `json:"last_used,omitempty"`
	Expires   *time.Time      `json:"expires,omitempty"`
	Bytes     int64           `json:"bytes"`
	Encrypted bool            `json:"encrypted"`
	Holder    *holder         `json:"holder,omitempty"`
	Values    json.RawMessage `json:"values,omitempty"`

	key string // the ID of the key that it is sealed with, if there are keys, but not this one
}

func show(j *job) error {
	s, err := j.look(j.ids[0])
	if err != nil {
		return err
	}
	st, err := j.redis.store()
	if err != nil {
		return err
	}
	defer st.Close()
	if err := j.open(s, st); err != nil {
		return err
	}
	if s.key != "" {
		fmt.Fprintf(j.out.stderr, "latchkey: the session is %s\n", printable(j.whySealed(s.key)))
	}
	if j.json {
		return j.printJSON(s)
	}
	return s.print(j)
}

// errForeign is for a key without a session, or with a format that this version does not know.
var errForeign = errors.New("another program has written it, or another version")

// headOf reads the beginning of a session's record.
func (j *job) headOf(id string, reply rueidis.RedisResult) (head, error) {
	text, err := reply.ToString()
	switch {
	case isWrongType(err):
		return head{}, fmt.Errorf("session %s: its key does not hold a session: %w", id, errForeign)
	case err != nil:
		return head{}, j.redis.explainedFor(j.ctx, err, j.recordKey(id))
	case text == "":
		return head{}, noSession(id)
	}
	h, ok := parseHead(text)
	if !ok {
		return head{}, fmt.Errorf("session %s: its record cannot be read: %w", id, errForeign)
	}
	return h, nil
}

// look reads the parts of a session that are never encrypted.
func (j *job) look(id string) (*session, error) {
	key := j.recordKey(id)
	replies := j.redis.doAll(j.ctx, j.redis.client, [][]string{
		{"GETRANGE", key, "0", strconv.Itoa(headSize)}, {"STRLEN", key}, {"PTTL", key},
		partOf(key + ".lock"), {"PTTL", key + ".lock"}, partOf(key + ".lock.queue")})
	now := time.Now()
	h, err := j.headOf(id, replies[0])
	switch {
	case err != nil:
		return nil, err
	case h.gone && h.ended.IsZero():
		return nil, fmt.Errorf("session %s: %w", id, errEnded)
	case h.renewed:
		return nil, fmt.Errorf("session %s: it got a new ID %s", id, ago(h.ended, now))
	case h.gone:
		return nil, fmt.Errorf("session %s: it was ended %s", id, ago(h.ended, now))
	}
	number := func(i int) int64 { n, _ := replies[i].AsInt64(); return n }
	s := &session{Session: id, Created: h.created, Encrypted: h.sealed, Bytes: number(1)}
	if left := number(2); left > 0 { // otherwise it has no timeout, which only an operator can have done
		end := now.Add(time.Duration(left) * time.Millisecond).UTC().Round(time.Millisecond)
		s.Expires = &end
		if h.until.IsZero() {
			s.LastUsed = j.lastUsed(h.created, end, cmp.Or(h.idle, j.ttl), now)
		}
	}
	if token, err := replies[3].ToString(); err == nil && (token != "" || number(4) != noKey) {
		who := newHolder(id, token, textOf(replies[5]), time.Duration(number(4))*time.Millisecond, now)
		s.Holder = &who
	}
	return s, nil
}

// sealed replaces open if there are no keys, or not those of the session.
func (j *job) sealed(s *session) error {
	if !j.values {
		return nil
	}
	return fmt.Errorf("session %s: its values are %s", s.Session, j.whySealed(s.key))
}

const nameTheKeys = "name the file of the keys by --keys-file or " + keysVariable

// whySealed says why sessions cannot be opened. keys are the IDs of the keys that they are sealed with. The text also
// has the IDs of the keys in the file: they show which file belongs to a session.
func (o *options) whySealed(keys ...string) string {
	if len(o.keys) == 0 {
		return "encrypted: " + nameTheKeys
	}
	own := make([]string, len(o.keys))
	for i, key := range o.keys {
		own[i], _ = records.KeyID(key) // readKeys has checked that they can be used
	}
	is := "is"
	if len(keys) > 1 {
		is = "are"
	}
	return fmt.Sprintf("sealed with %s, which %s not in %s: it has %s", theKeys(keys), is, o.keysFile, theKeys(own))
}

func theKeys(ids []string) string {
	if len(ids) == 1 {
		return "the key " + ids[0]
	}
	return "the keys " + strings.Join(ids, ", ")
}

// open reads the session's user, and with --values its values.
func (j *job) open(s *session, st *store.Store) error {
	r, _, err := records.Of(st).Peek(j.ctx, s.Session, j.terms())
	unknown, isUnknown := errors.AsType[*records.UnknownKey](err)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return noSession(s.Session)
	case errors.Is(err, store.ErrGone):
		return fmt.Errorf("session %s: %w", s.Session, errEnded)
	case err != nil && s.Encrypted && len(j.keys) == 0 && errors.Is(err, store.ErrCorrupt):
		return j.sealed(s)
	case isUnknown:
		s.key = unknown.ID
		return j.sealed(s)
	case err != nil:
		return j.ofStore(err, j.recordKey(s.Session))
	}
	s.User, s.Device = r.User, r.Device
	if !j.values {
		return nil
	}
	if s.Values = r.Encoded(); !json.Valid(s.Values) {
		return fmt.Errorf("session %s: its values are not JSON", s.Session)
	}
	return nil
}

func (s *session) print(j *job) error {
	now := time.Now()
	when := func(t *time.Time, relative func(_, _ time.Time) string, none string) string {
		if t == nil {
			return none
		}
		return moment(*t) + ", " + relative(*t, now)
	}
	unknown := "not known"
	if j.ttl == 0 {
		unknown = "not known without --ttl"
	}
	state := "free"
	if s.Holder != nil {
		state = s.Holder.String()
	}
	size := grouped(s.Bytes) + " bytes"
	if s.Encrypted {
		size += ", encrypted"
	}
	lines := [][2]string{{"session", s.Session}}
	if s.User != "" {
		lines = append(lines, [2]string{"user", s.User}, [2]string{"device", cmp.Or(s.Device, "-")})
	}
	lines = append(lines,
		[2]string{"created", when(&s.Created, ago, "")},
		[2]string{"last used", when(s.LastUsed, ago, unknown)},
		[2]string{"expires", when(s.Expires, in, "never")},
		[2]string{"size", size},
		[2]string{"state", state})
	pairs(j.out, lines...)
	if !j.values {
		return nil
	}
	return s.printValues(j)
}

func (s *session) printValues(j *job) error {
	var values map[string]json.RawMessage
	if err := json.Unmarshal(s.Values, &values); err != nil {
		return fmt.Errorf("session %s: its values: %w", s.Session, err)
	}
	if len(values) == 0 {
		fmt.Fprintln(j.out, "\nthe session holds no values")
		return nil
	}
	fmt.Fprintln(j.out, "\nvalues")
	var lines [][2]string
	for name, value := range values {
		lines = append(lines, [2]string{"  " + name, string(value)})
	}
	slices.SortFunc(lines, func(a, b [2]string) int { return strings.Compare(a[0], b[0]) })
	pairs(j.out, lines...)
	return nil
}

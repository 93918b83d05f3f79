package model

import (
	"fmt"
	"strings"
	"time"

	"github.com/a2139e8d/latchkey/internal/fakeredis"
)

// A dbID is the number of a content of Redis.
type dbID uint32

// A server runs the scripts. It remembers each of its states, and the effect of each call there, so that
// it runs nothing twice.
type server struct {
	texts [kinds]string
	calls []call
	ids   map[call]callID

	states []*fakeredis.Server
	views  []view
	dumps  map[string]dbID
	runs   map[run]reply
	ends   map[dbID]dbID // the state after the lock has expired
	tidied map[tidying]dbID
}

// A run is a call in a state of Redis, with the processes that listen.
type run struct {
	db    dbID
	call  callID
	heard uint8
}

// A reply is the result of a run.
type reply struct {
	db     dbID
	code   uint8 // the first value
	joined uint8 // take, if another request has the lock
	holder token
	bad    string // why the script must not give this reply
}

// refused reports whether a commit was refused.
func (r reply) refused() bool {
	return r.code == replyLost || r.code == replyLostAgain || r.code == replyUnstaged
}

// A view is the content of Redis.
type view struct {
	dump  string
	lock  token // the token that has the lock
	turn  place // the place to which the lock was given
	queue []place
	stamp token
	chain chain // of a record
	gone  bool  // the record is a tombstone
	there bool  // there is a record or a tombstone
	// staged has the stamps of the staged records; sharedBit: there is one at a shared key.
	staged uint16
	bad    string
}

// free reports whether the lock is free.
func (v *view) free() bool { return v.lock == 0 && v.turn == 0 }

func now() time.Time { return time.UnixMilli(epoch) }

// newServer returns a server, with an empty session as state 0.
func newServer(s Scripts) *server {
	v := &server{ids: map[call]callID{}, dumps: map[string]dbID{}, runs: map[run]reply{}, ends: map[dbID]dbID{}, tidied: map[tidying]dbID{}}
	for kind, name := range files {
		v.texts[kind] = s[name]
	}
	v.calls = append(v.calls, call{}) // 0 means none
	first := fakeredis.New()
	first.Connect(nil).Do(now(), "SET", record, call{form: data, stamp: born}.record(), "PX", ttl)
	v.intern(first)
	return v
}

func (s *server) intern(db *fakeredis.Server) dbID {
	dump := db.Dump(now())
	id, ok := s.dumps[dump]
	if !ok {
		id = dbID(len(s.states))
		s.dumps[dump] = id
		s.states = append(s.states, db)
		s.views = append(s.views, look(db, dump))
	}
	return id
}

// run runs a call. A process whose bit is set in heard listens to its channel.
func (s *server) run(db dbID, id callID, heard uint8) reply {
	key := run{db, id, heard}
	r, ok := s.runs[key]
	if !ok {
		r = s.execute(key)
		s.runs[key] = r
	}
	return r
}

func (s *server) execute(key run) reply {
	db, c := s.states[key.db].Clone(), s.calls[key.call]
	for p := range uint8(processes) {
		if key.heard>>p&1 != 0 {
			db.Connect(nil).Do(now(), "SUBSCRIBE", channel(p))
		}
	}
	text := ""
	if c.kind < kinds {
		text = s.texts[c.kind]
	}
	answer := db.Connect(nil).Do(now(), c.command(text)...)
	r := readReply(c.kind, answer)
	r.db = s.intern(db.Clone())
	return r
}

func readReply(k kind, answer fakeredis.Reply) (r reply) {
	if k > kinds { // a command without a script, which returns OK or nothing
		if answer.IsError() {
			r.bad = fmt.Sprintf("Redis said %v", answer)
		}
		if answer.Text() == "OK" {
			r.code = 1
		}
		return r
	}
	r.code = uint8(answer.Int() & 3)                         // without the number of the call
	if list := answer.List(); k == commit && len(list) > 0 { // it was refused, and the reason follows
		r.code = uint8(list[0].Int())
	} else if k != commit && k != save {
		if len(list) == 0 {
			return reply{bad: fmt.Sprintf("the script said %v", answer)}
		}
		r.code = uint8(int8(list[0].Int()))
		if k == take && r.code == 0 {
			if len(list) > 3 {
				r.joined = uint8(list[3].Int())
			}
			r.holder, _ = readLock(list[1].Text())
		}
	}
	if k == commit && strings.HasPrefix(answer.Text(), "ERR no such key") {
		r.code = replyUnstaged
		return r
	}
	if answer.IsError() || k == take && r.code > 3 || k == commit && r.code > replyLostAgain {
		r.bad = fmt.Sprintf("the script said %v", answer)
	}
	return r
}

// expire returns the state after the lock has expired.
func (s *server) expire(db dbID) dbID {
	id, ok := s.ends[db]
	if !ok {
		rest := s.states[db].Clone()
		rest.Delete(lock)
		id = s.intern(rest)
		s.ends[db] = id
	}
	return id
}

// look reads the content of Redis.
func look(db *fakeredis.Server, dump string) (v view) {
	v.dump = dump
	c := db.Connect(nil)
	get := func(key string) string { return c.Do(now(), "GET", key).Text() }
	v.lock, v.turn = readLock(get(lock))
	for text := range strings.FieldsSeq(get(queue)) {
		v.queue = append(v.queue, readPlace(text))
	}
	text := get(record)
	if rest, ok := strings.CutPrefix(text, `{"v":2,"s":"`); ok {
		v.there = true
		v.stamp = readToken(rest)
		v.gone = strings.Contains(rest, `,"gone":`)
		_, written, _ := strings.Cut(rest, `"d":"`)
		for _, b := range []byte(strings.TrimRight(written, `"}`)) {
			v.chain = v.chain.add(b - 'A')
		}
	}
	keys := []string{record, lock, queue}
	for _, key := range db.Keys(now()) {
		if rest, ok := strings.CutPrefix(key, stages); ok {
			v.staged |= stagedBit(strings.TrimPrefix(rest, "."))
			keys = append(keys, key)
		}
	}
	for _, key := range keys {
		if c.Do(now(), "PTTL", key).Int() == -1 {
			v.bad = key + " has no timeout"
		}
	}
	return v
}

func readLock(text string) (token, place) {
	if p := readPlace(text); p != 0 {
		return 0, p
	}
	return readToken(text), 0
}

func readToken(text string) token {
	switch {
	case len(text) < 2:
		return 0
	case text[:2] == born.String():
		return born
	}
	return tokenOf(text[0]-'A', text[1]-'1')
}

func readPlace(text string) place {
	rest, ok := strings.CutPrefix(text, channel(0)[:len(channel(0))-1])
	if !ok || len(rest) != 3 {
		return 0
	}
	return placeOf(rest[0]-'p', rest[2]-'1')
}

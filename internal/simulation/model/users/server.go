package users

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/a2139e8d/latchkey/internal/fakeredis"
	"github.com/a2139e8d/latchkey/internal/simulation/model"
)

// A dbID is the number of a content of Redis at a time of its clock.
type dbID uint32

// A server runs the scripts. It remembers each of its states, and the effect of each command there, so
// that it runs nothing twice.
type server struct {
	texts    [kinds]string
	switches Switches

	commands []command
	ids      map[command]commandID
	answers  []string // texts that Redis has returned, by textID
	answerID map[string]textID

	states []*fakeredis.Server
	times  []seconds // of Redis's clock
	views  []view
	dumps  map[string]dbID
	runs   map[run]reply
	later  map[passing]dbID
	tidied map[tidying]dbID
}

// A run is a command in a state of Redis.
type run struct {
	db      dbID
	command commandID
}

// A passing is a state of Redis that lasts until a time of its clock.
type passing struct {
	db   dbID
	time seconds
}

// A tidying is the cleanup of a state of Redis after EndAll.
type tidying struct {
	db    dbID
	ended sessions
}

// A reply is the result of a run.
type reply struct {
	db          dbID
	code        int8     // the first value
	sessions    sessions // login, endAll and claim: the sessions that it names
	stamp, mark textID   // take: of the record, and the mark that it has read
	below       sessions // load: what a claim would end
	unclaimed   bool     // load
	bad         string   // why the script must not give this reply
}

// sessions is a set of sessions.
type sessions uint8

func (s sessions) has(session uint8) bool { return session != none && s>>session&1 != 0 }

func set(session uint8) sessions {
	if session == none {
		return 0
	}
	return 1 << session
}

func (s sessions) String() string {
	if s == 0 {
		return "none"
	}
	text := ""
	for i := range uint8(maxCalls) {
		if s.has(i) {
			text += name(i)
		}
	}
	return text
}

// A view is the content of Redis.
type view struct {
	alive  sessions
	listed sessions
	ended  string // what is known of EndAll
	bad    string
	readMark
}

func newServer(s model.Scripts, b Bounds, w Switches) *server {
	v := &server{switches: w, ids: map[command]commandID{}, answerID: map[string]textID{}, dumps: map[string]dbID{}, runs: map[run]reply{}, later: map[passing]dbID{}, tidied: map[tidying]dbID{}}
	for kind, file := range files {
		v.texts[kind] = s[file]
	}
	if b.Room > 0 {
		v.texts[login] = strings.Replace(v.texts[login], "#order > "+strconv.Itoa(mostUnclaimed), "#order > "+strconv.Itoa(b.Room), 1)
	}
	v.commands = append(v.commands, command{}) // 0 means none
	v.answer("")
	v.intern(fakeredis.New(), 0)
	return v
}

func (s *server) id(c command) commandID {
	id, ok := s.ids[c]
	if !ok {
		if len(s.commands) > math.MaxUint16 {
			panic("the model has room for too few commands")
		}
		s.commands = append(s.commands, c)
		id = commandID(len(s.commands) - 1)
		s.ids[c] = id
	}
	return id
}

func (s *server) answer(text string) textID {
	id, ok := s.answerID[text]
	if !ok {
		id = textID(len(s.answers))
		s.answers = append(s.answers, text)
		s.answerID[text] = id
	}
	return id
}

func at(t seconds) time.Time { return time.Unix(base+int64(t), 0) }

func (s *server) intern(db *fakeredis.Server, time seconds) dbID {
	dump := fmt.Sprint(time, "\n", db.Dump(at(time)))
	id, ok := s.dumps[dump]
	if !ok {
		id = dbID(len(s.states))
		s.dumps[dump] = id
		s.states, s.times = append(s.states, db), append(s.times, time)
		s.views = append(s.views, look(db, time))
	}
	return id
}

// wait returns the state that follows when Redis's clock says so. Expired keys are gone, even if the
// clock is set back later.
func (s *server) wait(db dbID, time seconds) dbID {
	key := passing{db, time}
	id, ok := s.later[key]
	if !ok {
		rest := s.states[db].Clone()
		left := rest.Keys(at(time))
		for _, key := range rest.Keys(at(s.times[db])) {
			if !slices.Contains(left, key) {
				rest.Delete(key)
			}
		}
		id = s.intern(rest, time)
		s.later[key] = id
	}
	return id
}

func (s *server) run(db dbID, id commandID) reply {
	key := run{db, id}
	r, ok := s.runs[key]
	if !ok {
		rest, c := s.states[db].Clone(), &s.commands[id]
		r = s.readReply(c, rest.Connect(nil).Do(at(s.times[db]), s.sends(c)...))
		r.db = s.intern(even(rest.Clone(), s.times[db]), s.times[db])
		s.runs[key] = r
	}
	return r
}

// tidy does what Store.tidy does, at once: later it makes less of a difference.
func (s *server) tidy(db dbID, ended sessions) dbID {
	key := tidying{db, ended}
	id, ok := s.tidied[key]
	if !ok {
		rest := s.states[db].Clone()
		for i := range uint8(maxCalls) {
			if ended.has(i) {
				rest.Connect(nil).Do(at(s.times[db]), "PEXPIRE", recordKey(i, false), keeps, "LT")
			}
		}
		id = s.intern(rest, s.times[db])
		s.tidied[key] = id
	}
	return id
}

// sessionLasts is ttl as a duration.
const sessionLasts = 12 * time.Hour

// even gives all keys that outlast the model the same time to live, whenever they were written.
func even(db *fakeredis.Server, now seconds) *fakeredis.Server {
	c, end := db.Connect(nil), at(0).Add(sessionLasts)
	do := func(words ...string) fakeredis.Reply { return c.Do(at(now), words...) }
	for _, key := range db.Keys(at(now)) {
		if left, _ := db.Left(at(now), key); left > sessionLasts/2 {
			do("PEXPIRE", key, fmt.Sprint(end.Sub(at(now)).Milliseconds()))
		}
	}
	for _, m := range do("ZRANGE", list, "0", "-1").List() {
		do("ZADD", list, fmt.Sprint(end.UnixMilli()), m.Text())
	}
	return db
}

func (s *server) readReply(c *command, answer fakeredis.Reply) (r reply) {
	values := answer.List()
	r.code = int8(answer.Int() & 3)
	if len(values) > 0 {
		r.code = int8(max(-2, min(values[0].Int(), 4))) // endAll: the time, if it is not refused
	}
	switch {
	case answer.IsError():
		r.bad = fmt.Sprintf("Redis said %v", answer)
	case c.kind == take && r.code == 1:
		r.stamp = s.answer(values[1].Text()[12:28])
		if !c.guest {
			r.mark = s.answer(values[3].Text())
		}
	case c.kind == load && r.code == 1 && !c.guest:
		var m readMark
		m.read(values[2].Text())
		r.below, r.unclaimed = m.below(c.session), m.entries.has(c.session)
	case r.code > 0 && len(values) > 1 && (c.kind == login || c.kind == endAll || c.kind == claim):
		for _, value := range values[1:] {
			r.sessions |= readMember(value.Text())
		}
	}
	return r
}

func readMember(text string) sessions { return set(sessionOf(text)) }

// sessionOf returns the session with a member, or none.
func sessionOf(text string) uint8 {
	for i := range uint8(maxCalls) {
		if text == member(i) {
			return i
		}
	}
	return none
}

// look reads the content of Redis.
func look(db *fakeredis.Server, time seconds) (v view) {
	c := db.Connect(nil)
	do := func(words ...string) fakeredis.Reply { return c.Do(at(time), words...) }
	marked := do("GET", mark).Text()
	_, v.ended, _ = strings.Cut(marked, ",")
	onList := do("ZRANGE", list, fmt.Sprint(at(time).UnixMilli()), "+inf", "BYSCORE").List()
	if marked != "" && !strings.HasPrefix(marked, nobody) {
		for _, m := range onList {
			v.listed |= readMember(m.Text())
		}
	} else if len(onList) > 0 {
		v.bad = "there is a list without a mark"
	}
	var ofUser sessions
	for i := range uint8(maxCalls) {
		if text := do("GET", recordKey(i, true)).Text(); strings.Contains(text, `","c":`) {
			v.alive |= set(i)
		}
		_, epoch, _ := strings.Cut(do("GET", recordKey(i, false)).Text(), `,"g":`)
		if len(epoch) > 15 && (strings.HasPrefix(marked, epoch[:15]) || strings.Contains(marked, " "+member(i))) {
			ofUser |= set(i)
		}
	}
	v.alive |= ofUser
	if v.listed != ofUser {
		v.bad = fmt.Sprintf("on the list: %v; alive: %v", v.listed, ofUser)
	}
	if bad := v.read(marked); bad != "" {
		v.bad = bad
	}
	for _, key := range db.Keys(at(time)) {
		if do("PTTL", key).Int() == -1 {
			v.bad = key + " has no timeout"
		}
	}
	return v
}

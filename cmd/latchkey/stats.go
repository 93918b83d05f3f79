package main

import (
	"cmp"
	"strconv"
	"strings"
	"time"

	"github.com/a2139e8d/latchkey/internal/records"
	"github.com/redis/rueidis"
)

const statsAbout = `Counts sessions, and says how large and how old they are. It reads all keys by
SCAN on one master after another, in batches of 50 keys. After each batch it
pauses for twice the time of the batch, so that Redis has time for others: a
million sessions take most of a minute. With --limit it stops early.
Keys that are made or deleted meanwhile may or may not be counted. If slots of
a cluster move meanwhile, a line on stderr says so. ENDED and
RENEWED are IDs that were ended, or replaced by new ones, in the last minute.
USERS are users with a list of sessions, perhaps without a session by now:
users says who is logged in.
`

// memorySample: one in so many sessions is asked for its memory.
const memorySample = 100

// unreadableIDs is how many of the IDs that cannot be read are named.
const unreadableIDs = 5

// A tally counts what was found on one master, or on all.
type tally struct {
	Address       string   `json:"address,omitempty"`
	Sessions      int64    `json:"sessions"`
	Owned         int64    `json:"of_users"`       // sessions of users
	Users         int64    `json:"users"`          // who have a list of sessions, which outlives the last of these
	Ended         int64    `json:"ended"`          // less than a minute ago
	Renewed       int64    `json:"renewed"`        // IDs that were replaced by others less than a minute ago
	Held          int64    `json:"held"`           // sessions with a lock
	Endless       int64    `json:"endless"`        // sessions without a timeout
	Unreadable    int64    `json:"unreadable"`     // records of another program or version
	UnreadableIDs []string `json:"unreadable_ids"` // of a few of them
	Others        int64    `json:"other_keys"`     // with the prefix, of other programs

	bytes, memory, age, left spread // of sessions; the last two in seconds
	overhead                 int64  // of the sessions in memory: what they need beside the bytes of their records
}

// allMemory estimates the memory of all sessions. Their records are known. Only the overhead is estimated: it differs
// little, so a few sessions are enough.
func (t *tally) allMemory() int64 {
	if t.memory.n == 0 {
		return 0
	}
	return t.bytes.total + t.overhead*t.bytes.n/t.memory.n
}

func stats(j *job) error {
	masters, err := j.redis.masters(j.ctx)
	if err != nil {
		return err
	}
	s := &survey{job: j, bar: newProgress(j.out.stderr, j.countKeys(masters)), begun: time.Now(), all: tally{UnreadableIDs: []string{}}}
	defer s.bar.end()
	if s.away, err = j.each(masters, s.count); err != nil {
		return err
	}
	s.bar.end()
	s.warnOfMoves()
	return cmp.Or(s.print(), found(s.away))
}

// A survey is one run of stats.
type survey struct {
	*job
	bar   *progress
	begun time.Time
	nodes []*tally
	all   tally
	away  []away
	seen  int64 // keys of the earlier nodes
}

// full reports whether enough sessions were found, with those on the current master.
func (s *survey) full(t *tally) bool {
	return s.limit > 0 && s.all.Sessions+t.Sessions >= int64(s.limit)
}

// count counts what is on one master.
func (s *survey) count(n *node) error {
	t := &tally{Address: n.address, UnreadableIDs: []string{}} // which is no null in JSON
	if s.full(t) {
		return nil
	}
	looked := 0
	err := n.sweep(s.ctx, s.pattern(""), batch, func(keys []string) (bool, error) {
		err := s.add(t, n, keys)
		return !s.full(t), err
	}, func(seen int) {
		looked = seen
		s.bar.set(s.seen + int64(seen))
	})
	s.seen += int64(looked)
	if err == nil {
		s.nodes = append(s.nodes, t)
		s.all.merge(t)
	}
	return err
}

// merge adds what was found on one master.
func (t *tally) merge(other *tally) {
	t.Sessions += other.Sessions
	t.Owned += other.Owned
	t.Users += other.Users
	t.Ended += other.Ended
	t.Renewed += other.Renewed
	t.Held += other.Held
	t.Endless += other.Endless
	t.Unreadable += other.Unreadable
	for _, id := range other.UnreadableIDs {
		t.nameUnreadable(id)
	}
	t.Others += other.Others
	t.bytes.merge(&other.bytes)
	t.memory.merge(&other.memory)
	t.overhead += other.overhead
	t.age.merge(&other.age)
	t.left.merge(&other.left)
}

func (t *tally) nameUnreadable(id string) {
	if len(t.UnreadableIDs) < unreadableIDs {
		t.UnreadableIDs = append(t.UnreadableIDs, id)
	}
}

// add counts a batch of keys.
func (s *survey) add(t *tally, n *node, keys []string) error {
	var records []string
	for _, key := range keys {
		switch what, _ := s.parseKey(key); what {
		case record:
			records = append(records, key)
		case lock:
			t.Held++
		case owner:
			t.Users++
		case other:
			t.Others++
		}
	}
	return s.addRecords(t, n, records)
}

// reads is how many commands addRecords has for each record.
const reads = 3

// addRecords reads the heads, sizes and timeouts of records in one write.
func (s *survey) addRecords(t *tally, n *node, keys []string) error {
	var commands [][]string
	for _, key := range keys {
		commands = append(commands, []string{"GETRANGE", key, "0", strconv.Itoa(headSize)}, []string{"STRLEN", key}, []string{"PTTL", key})
	}
	sampled := int(s.all.Sessions+t.Sessions) % memorySample
	first := (memorySample - sampled) % memorySample
	for i := first; i < len(keys); i += memorySample {
		commands = append(commands, []string{"MEMORY", "USAGE", keys[i]})
	}
	replies := s.redis.doAll(s.ctx, n.client, commands)
	ended, err := s.endedWithUser(n, keys, replies)
	if err != nil {
		return err
	}
	now := time.Now()
	counted := make([]bool, len(keys)) // as sessions
	for i, key := range keys {
		if s.full(t) {
			break
		}
		before := t.Sessions
		if err := s.addRecord(t, key, replies[reads*i:reads*i+reads], ended[key], now); err != nil {
			return err
		}
		counted[i] = t.Sessions > before
	}
	for i, reply := range replies[reads*len(keys):] {
		of := first + i*memorySample
		if n, err := reply.AsInt64(); err == nil && counted[of] { // the key may be gone, or the right missing
			size, _ := replies[reads*of+1].AsInt64()
			t.memory.add(n)
			t.overhead += n - size
		}
	}
	return nil
}

// endedWithUser returns the records of sessions that were ended with all of their user: the user's mark says so. Such records
// stay as they are, and expire within a minute, unless the process that has ended them was killed then. So the marks of
// others are not read.
func (s *survey) endedWithUser(n *node, keys []string, replies []rueidis.RedisResult) (map[string]bool, error) {
	var ending []int // of keys
	var commands [][]string
	for i, key := range keys {
		_, id := s.parseKey(key)
		tag, _, ofUser := strings.Cut(id, ".")
		if left, err := replies[reads*i+2].AsInt64(); err == nil && ofUser && left <= time.Minute.Milliseconds() {
			ending = append(ending, i)
			commands = append(commands, []string{"GET", s.prefix + "{" + tag + "}.user"})
		}
	}
	ended := make(map[string]bool)
	for j, reply := range s.redis.doAll(s.ctx, n.client, commands) {
		mark, err := reply.ToString()
		switch {
		case isWrongType(err), hasMoved(err): // so it is not known
			continue
		case err != nil && !rueidis.IsRedisNil(err):
			return nil, err
		}
		i := ending[j]
		_, id := s.parseKey(keys[i])
		text, _ := replies[reads*i].ToString()
		ended[keys[i]] = !records.IsAlive(mark, id[tagLength+len("."):], epochIn(text))
	}
	return ended, nil
}

// addRecord counts one record. ended: its session was ended with all of the user.
func (s *survey) addRecord(t *tally, key string, replies []rueidis.RedisResult, ended bool, now time.Time) error {
	_, id := s.parseKey(key)
	text, err := replies[0].ToString()
	switch {
	case isWrongType(err):
		t.Unreadable++
		t.nameUnreadable(id)
		return nil
	case hasMoved(err) || err == nil && text == "": // it is gone
		return nil
	case err != nil:
		return err
	}
	size, _ := replies[1].AsInt64()
	left, _ := replies[2].AsInt64()
	h, ok := parseHead(text)
	switch {
	case !ok:
		t.Unreadable++
		t.nameUnreadable(id)
		return nil
	case h.renewed:
		t.Renewed++
		return nil
	case h.gone, ended:
		t.Ended++
		return nil
	case left < 0:
		t.Endless++
	default:
		t.left.add(left / 1000)
	}
	t.Sessions++
	if strings.Contains(id, ".") {
		t.Owned++
	}
	t.bytes.add(size)
	t.age.add(int64(now.Sub(h.created) / time.Second))
	return nil
}

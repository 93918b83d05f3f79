package main

import (
	"cmp"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/a2139e8d/latchkey/internal/records"
	"github.com/redis/rueidis"
)

// listsPerScan finds about a batch of lists: a user with one session has three keys, and one of them is the list.
const listsPerScan = 3 * batch

// count counts the users on one master.
func (c *census) count(n *node) error {
	here, looked := &crowd{}, 0
	err := n.sweep(c.ctx, c.pattern(".list"), listsPerScan, func(keys []string) (bool, error) {
		for some := range slices.Chunk(keys, batch) {
			if err := c.addUsers(here, n, some); err != nil {
				return false, err
			}
		}
		return true, nil
	}, func(seen int) {
		looked = seen
		c.bar.set(c.seen + int64(seen))
	})
	c.seen += int64(looked)
	if err == nil {
		c.merge(here)
		c.cut(c.limit)
	}
	return err
}

// A member is one session on a user's list.
type member struct {
	user *loggedIn
	mark string
	own  string // its ID, without the tag
}

func (m member) id() string { return m.user.Tag + "." + m.own }

// addUsers reads lists of users, and then their sessions.
func (c *census) addUsers(here *crowd, n *node, lists []string) error {
	var commands [][]string
	var all []*loggedIn
	for _, key := range lists {
		if what, tag := c.parseKey(key); what == owner {
			all = append(all, &loggedIn{Tag: tag})
			commands = append(commands, []string{"GET", strings.TrimSuffix(key, ".list") + ".user"}, []string{"ZRANGE", key, "0", "-1"})
		}
	}
	replies := c.redis.doAll(c.ctx, n.client, commands)
	var members []member
	for i, u := range all {
		listed, err := here.membersOf(u, commands[2*i:2*i+2], replies[2*i:2*i+2])
		if err != nil {
			return err
		}
		members = append(members, listed...)
	}
	for some := range slices.Chunk(members, batch) {
		if err := c.addSessions(here, n, some); err != nil {
			return err
		}
	}
	for _, u := range all {
		if u.Sessions > 0 {
			here.add(*u, c.limit)
		}
	}
	return nil
}

// membersOf returns the sessions on a user's list. The commands have read the user's mark, and then the list.
func (c *crowd) membersOf(u *loggedIn, commands [][]string, replies []rueidis.RedisResult) (members []member, _ error) {
	mark, err := replies[0].ToString()
	list, err2 := replies[1].AsStrSlice()
	switch failed := cmp.Or(err, err2); {
	case isWrongType(err):
		c.cannotRead(commands[0][1])
		return nil, nil
	case isWrongType(failed):
		c.cannotRead(commands[1][1])
		return nil, nil
	case isGone(failed): // without a mark all of the user's sessions have ended
		return nil, nil
	case failed != nil:
		return nil, failed
	}
	for _, own := range records.Remaining(mark, list) {
		members = append(members, member{u, mark, own})
	}
	return members, nil
}

// isGone reports whether a key has expired, has gone to another master, or is not Latchkey's.
func isGone(err error) bool {
	return err != nil && (rueidis.IsRedisNil(err) || isWrongType(err) || hasMoved(err))
}

// addSessions reads the heads of sessions, and counts those that are alive.
func (c *census) addSessions(here *crowd, n *node, members []member) error {
	var commands [][]string
	for _, m := range members {
		key := c.recordKey(m.id())
		commands = append(commands, []string{"GETRANGE", key, "0", strconv.Itoa(headSize)}, []string{"PTTL", key})
	}
	replies := c.redis.doAll(c.ctx, n.client, commands)
	now := time.Now()
	for i, m := range members {
		text, err := replies[2*i].ToString()
		left, err2 := replies[2*i+1].AsInt64()
		if err = cmp.Or(err, err2); err != nil && !isGone(err) {
			return err
		}
		h, ok := parseHead(text)
		if isWrongType(err) || err == nil && text != "" && !ok {
			here.cannotRead(commands[2*i][1])
		}
		if err == nil && ok && !h.gone && records.IsAlive(m.mark, m.own, epochIn(text)) {
			c.addSession(m, h, text, time.Duration(left)*time.Millisecond, now)
		}
	}
	return nil
}

var epochForm = regexp.MustCompile(`^\{"v":2,"s":"\w+","c":\d+,"g":(\d+)`)

// epochIn returns the epoch in the head of a record, or "" if it has none.
func epochIn(head string) string {
	if found := epochForm.FindStringSubmatch(head); found != nil {
		return found[1]
	}
	return ""
}

// addSession counts a session that expires after left. Its record begins with text, which nearly always names the
// user, unless the record is encrypted.
func (c *census) addSession(m member, h head, text string, left time.Duration, now time.Time) {
	u := m.user
	u.Sessions++
	if u.newest == "" || h.created.After(u.LastLogin) {
		u.newest, u.LastLogin = m.id(), h.created
	}
	if u.User == "" && !h.sealed {
		u.User, _ = records.Of(c.store).UserIn(m.id(), []byte(text))
	}
	if left < 0 { // it has no timeout, which only an operator can have done
		return
	}
	end := now.Add(left).UTC().Round(time.Millisecond)
	u.Expires = latest(u.Expires, &end)
	if h.until.IsZero() {
		u.LastUsed = latest(u.LastUsed, c.lastUsed(h.created, end, cmp.Or(h.idle, c.ttl), now))
	}
}

// latest returns the later of two times, which may be nil.
func latest(a, b *time.Time) *time.Time {
	if a == nil || b != nil && b.After(*a) {
		return b
	}
	return a
}

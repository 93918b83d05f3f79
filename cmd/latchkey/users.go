package main

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/a2139e8d/latchkey/store"
	"github.com/a2139e8d/latchkey/store/rueidisstore"
)

const usersAbout = `Shows who is logged in: how many users, and those with the most live sessions.
It looks for the users' lists by SCAN on each master, with pauses. If sessions
are encrypted, a user is named only with the keys, and otherwise by the tag that
the IDs of the user's sessions begin with. The times of last use are only known
if --ttl is the idle timeout of the program.
`

// A loggedIn is a user with live sessions.
type loggedIn struct {
	User      string     `json:"user"` // "": not known
	Tag       string     `json:"tag"`  // begins the IDs of the user's sessions
	Sessions  int        `json:"sessions"`
	LastLogin time.Time  `json:"last_login"`
	LastUsed  *time.Time `json:"last_used,omitempty"`
	Expires   *time.Time `json:"expires,omitempty"` // when the user's last session expires; nil: not known

	newest string // the session that began last; its record names the user
	locked bool   // that record is sealed, and cannot be opened
}

// A census counts the users who are logged in.
type census struct {
	*job
	store *store.Store // opens records
	bar   *progress
	seen  int64 // keys that were looked at on the masters before this one
	crowd
	away []away
}

// A crowd has the users with the most sessions, how many users there are, and what is not known of others.
type crowd struct {
	top             []loggedIn
	users, sessions int64
	unreadable      int64    // keys that another program or version has written, of users or of their sessions
	unreadableKeys  []string // a few of them
}

func users(j *job) error {
	masters, err := j.redis.masters(j.ctx)
	if err != nil {
		return err
	}
	st, err := rueidisstore.Open(j.redis.option, j.redis.o) // only its keys are needed, so a replica will do
	if err != nil {
		return err
	}
	defer st.Close()
	c := &census{job: j, store: st, bar: newProgress(j.out.stderr, j.countKeys(masters))}
	defer c.bar.end()
	if c.away, err = j.each(masters, c.count); err != nil {
		return err
	}
	c.cut(c.limit)
	if err := c.name(); err != nil {
		return err
	}
	c.bar.end()
	c.hint()
	c.warnOfMoves()
	err = cmp.Or(c.print(), found(c.away))
	if err == nil && c.unreadable > 0 { // hint has said so
		err = errFound
	}
	return err
}

// add adds a user.
func (c *crowd) add(u loggedIn, limit int) {
	c.users++
	c.sessions += int64(u.Sessions)
	c.top = append(c.top, u)
	const spare = 1000
	if limit > 0 && len(c.top) >= 2*limit+spare { // so that memory is bounded, and sorting is rare
		c.cut(limit)
	}
}

// cut leaves the users with the most sessions, in order. SCAN may have found a user twice.
func (c *crowd) cut(limit int) {
	slices.SortFunc(c.top, func(a, b loggedIn) int {
		return cmp.Or(b.Sessions-a.Sessions, b.LastLogin.Compare(a.LastLogin), strings.Compare(a.Tag, b.Tag))
	})
	twice := make(map[string]bool)
	c.top = slices.DeleteFunc(c.top, func(u loggedIn) bool {
		known := twice[u.Tag]
		twice[u.Tag] = true
		return known
	})
	if limit > 0 && len(c.top) > limit {
		c.top = slices.Delete(c.top, limit, len(c.top))
	}
}

// merge adds the users of one master.
func (c *crowd) merge(other *crowd) {
	c.users += other.users
	c.sessions += other.sessions
	c.top = append(c.top, other.top...)
	c.unreadable += other.unreadable
	c.unreadableKeys = append(c.unreadableKeys, other.unreadableKeys...)
	c.unreadableKeys = c.unreadableKeys[:min(len(c.unreadableKeys), unreadableIDs)]
}

// cannotRead counts a key that another program or version has written. If a user is looked at twice, a key that was named
// does not count twice.
func (c *crowd) cannotRead(key string) {
	if slices.Contains(c.unreadableKeys, key) {
		return
	}
	c.unreadable++
	if len(c.unreadableKeys) < unreadableIDs {
		c.unreadableKeys = append(c.unreadableKeys, key)
	}
}

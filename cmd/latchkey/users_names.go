package main

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/a2139e8d/latchkey/internal/records"
)

// nameSize is enough for a record up to the name of its user, however long the device and the name are. Most sealed
// records are no longer: to open a sealed one, all of it is needed.
const nameSize = 410 + 6*records.MaxUser + 100

// nameTries is how often a user is looked up whose newest session ends, or gets a new ID, each time before it is read.
const nameTries = 5

// name reads the names of the users that are shown, as far as they are not known yet. It leaves out those whose
// sessions have all ended since they were counted.
func (c *census) name() error {
	var unnamed []*loggedIn
	for i := range c.top {
		if c.top[i].User == "" {
			unnamed = append(unnamed, &c.top[i])
		}
	}
	c.bar.total = c.seen + int64(len(unnamed))
	for some := range slices.Chunk(unnamed, batch) {
		begun := time.Now()
		if err := c.nameSome(some); err != nil {
			return err
		}
		c.seen += int64(len(some))
		c.bar.set(c.seen)
		if err := pause(c.ctx, rest(time.Since(begun))); err != nil {
			return err
		}
	}
	c.top = slices.DeleteFunc(c.top, func(u loggedIn) bool { return u.Sessions == 0 })
	c.cut(c.limit)
	return nil
}

func (c *census) nameSome(some []*loggedIn) error {
	for try := 1; len(some) > 0; try++ {
		gone, err := c.readNames(some)
		if err != nil || try == nameTries {
			return err
		}
		if some, err = c.countAgain(gone); err != nil {
			return err
		}
	}
	return nil
}

// readNames reads the newest session of each of these users. It returns the users whose newest session is gone.
func (c *census) readNames(some []*loggedIn) (gone []*loggedIn, _ error) {
	var commands [][]string
	for _, u := range some {
		commands = append(commands, []string{"GETRANGE", c.recordKey(u.newest), "0", strconv.Itoa(nameSize - 1)})
	}
	for i, reply := range c.redis.doAll(c.ctx, c.redis.client, commands) {
		u, key := some[i], commands[i][1]
		text, err := reply.ToString()
		if h, _ := parseHead(text); h.sealed && len(c.keys) > 0 && len(text) == nameSize {
			text, err = c.redis.doAll(c.ctx, c.redis.client, [][]string{{"GET", key}})[0].ToString()
		}
		h, _ := parseHead(text)
		switch {
		case err != nil && !isGone(err):
			return nil, c.redis.explainedFor(c.ctx, err, key)
		case err != nil || text == "" || h.gone:
			gone = append(gone, u)
		default:
			u.User, err = records.Of(c.store).UserIn(u.newest, []byte(text))
			u.locked = h.sealed && err != nil
		}
	}
	return gone, nil
}

// countAgain counts the sessions of some users again, and returns the users who still have no name.
func (c *census) countAgain(some []*loggedIn) (unnamed []*loggedIn, _ error) {
	now, lists := &crowd{unreadable: c.unreadable, unreadableKeys: c.unreadableKeys}, []string{}
	for _, u := range some {
		lists = append(lists, c.prefix+"{"+u.Tag+"}.list")
	}
	if err := c.addUsers(now, &node{redis: c.redis, client: c.redis.client}, lists); err != nil {
		return nil, err
	}
	c.unreadable, c.unreadableKeys = now.unreadable, now.unreadableKeys
	for _, u := range some {
		c.users, c.sessions = c.users-1, c.sessions-int64(u.Sessions)
		at := slices.IndexFunc(now.top, func(n loggedIn) bool { return n.Tag == u.Tag })
		if at < 0 {
			u.Sessions = 0
			continue
		}
		*u = now.top[at]
		if c.users, c.sessions = c.users+1, c.sessions+int64(u.Sessions); u.User == "" {
			unnamed = append(unnamed, u)
		}
	}
	return unnamed, nil
}

// hint says on stderr why users may be missing, or have no names.
func (c *census) hint() {
	switch {
	case c.unreadable > 0:
		what, it := "1 key", "it"
		if c.unreadable > 1 {
			what, it = plural(c.unreadable, "key"), "them"
		}
		fmt.Fprintln(c.out.stderr, "latchkey:", printable(what+" cannot be read, so users or sessions may be missing: another program has written "+
			it+", or another version: "+fewOf(c.unreadableKeys, c.unreadable)))
	case c.users == 0:
		fmt.Fprintln(c.out.stderr, c.prefixHint())
	}
	locked := int64(0)
	for _, u := range c.top {
		if u.locked {
			locked++
		}
	}
	if locked == 0 {
		return
	}
	why := "the keys are not those of the sessions"
	if len(c.keys) == 0 {
		why = "the sessions are " + c.whySealed()
	}
	c.hintAtTags(locked, why)
}

// hintAtTags says on stderr that users are shown by their tags, and why.
func (j *job) hintAtTags(users int64, why string) {
	text := "1 user is shown by the tag: "
	if users > 1 {
		text = plural(users, "user") + " are shown by their tags: "
	}
	fmt.Fprintln(j.out.stderr, "latchkey:", printable(text+why))
}

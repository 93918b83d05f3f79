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

// name reads the names of the users that are shown, as far as they are not known yet. A user whose session has just
// ended stays without a name.
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
		c.nameSome(some)
		c.seen += int64(len(some))
		c.bar.set(c.seen)
		if err := pause(c.ctx, rest(time.Since(begun))); err != nil {
			return err
		}
	}
	return nil
}

func (c *census) nameSome(some []*loggedIn) {
	var commands [][]string
	for _, u := range some {
		commands = append(commands, []string{"GETRANGE", c.recordKey(u.newest), "0", strconv.Itoa(nameSize - 1)})
	}
	for i, reply := range c.redis.doAll(c.ctx, c.redis.client, commands) {
		text, err := reply.ToString()
		if h, ok := parseHead(text); ok && h.sealed && len(c.keys) == 0 {
			continue
		} else if ok && h.sealed && len(text) == nameSize {
			text, err = c.redis.doAll(c.ctx, c.redis.client, [][]string{{"GET", c.recordKey(some[i].newest)}})[0].ToString()
		}
		if err == nil {
			some[i].User, _ = records.Of(c.store).UserIn(some[i].newest, []byte(text))
		}
	}
}

// hint says on stderr why users may be missing, or have no names.
func (c *census) hint() {
	if c.users == 0 {
		fmt.Fprintln(c.out.stderr, c.prefixHint())
	}
	unnamed := int64(0)
	for _, u := range c.top {
		if u.User == "" {
			unnamed++
		}
	}
	if unnamed == 0 {
		return
	}
	why := "the keys are not those of the sessions"
	if len(c.keys) == 0 {
		why = "the sessions are " + c.whySealed()
	}
	c.hintAtTags(unnamed, why)
}

// hintAtTags says on stderr that users are shown by their tags, and why.
func (j *job) hintAtTags(users int64, why string) {
	text := "1 user is shown by the tag: "
	if users > 1 {
		text = plural(users, "user") + " are shown by their tags: "
	}
	fmt.Fprintln(j.out.stderr, "latchkey:", printable(text+why))
}

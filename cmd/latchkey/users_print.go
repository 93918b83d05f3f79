package main

import (
	"cmp"
	"fmt"
	"time"
)

// print prints the users, and how many there are.
func (c *census) print() error {
	if c.json {
		return c.printJSON(struct {
			Users          []loggedIn `json:"users"`
			TotalUsers     int64      `json:"total_users"`
			TotalSessions  int64      `json:"total_sessions"`
			Unreadable     int64      `json:"unreadable"`
			UnreadableKeys []string   `json:"unreadable_keys"` // a few of them
			Away           []away     `json:"away"`
			SlotsMoved     bool       `json:"slots_moved"` // meanwhile, so keys may be missing, or counted twice
		}{append([]loggedIn{}, c.top...), c.users, c.sessions, c.unreadable, append([]string{}, c.unreadableKeys...), c.away, c.slotsMoved})
	}
	now := time.Now()
	rows := [][]string{{"USER", ">SESSIONS", "LAST LOGIN", "LAST USED", "EXPIRES"}}
	for _, u := range c.top {
		used, expires := "-", "-"
		if u.LastUsed != nil {
			used = ago(*u.LastUsed, now)
		}
		if u.Expires != nil {
			expires = in(*u.Expires, now)
		}
		rows = append(rows, []string{cmp.Or(u.User, "(tag "+u.Tag+")"), grouped(int64(u.Sessions)), ago(u.LastLogin, now), used, expires})
	}
	if len(c.top) > 0 {
		table(c.out, c.out.columns(), rows)
	}
	printAway(c.out, c.away)
	c.printTotals()
	return nil
}

func (c *census) printTotals() {
	known := asFarAsKnown(len(c.away) > 0 || c.unreadable > 0 || c.slotsMoved)
	switch {
	case c.users == 0:
		fmt.Fprintf(c.out, "nobody is logged in%s\n", known)
		return
	case c.users == 1:
		fmt.Fprintf(c.out, "1 user is logged in, with %s%s", plural(c.sessions, "session"), known)
	default:
		fmt.Fprintf(c.out, "%s users are logged in, with %s%s", grouped(c.users), plural(c.sessions, "session"), known)
	}
	if len(c.top) < int(c.users) && c.limit > 0 {
		fmt.Fprintf(c.out, "; --limit 0 shows all")
	}
	fmt.Fprintln(c.out)
}

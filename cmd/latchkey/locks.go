package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"time"

	"github.com/redis/rueidis"
)

const locksAbout = `Shows which sessions are held now, the longest first: since when, how many other
processes wait, what is left of the lease, which a live holder extends, and the
holder's process and request. Requests that wait in the holder's own process are
not counted: the page of Sessions.Debug of that process shows them.
It looks for locks by SCAN on each master, with pauses. --limit leaves out those
that are held for a shorter time.
`

// A look is what locks and watch see at once.
type look struct {
	Locks      []holder `json:"locks"` // the longest first; at most --limit
	Held       int      `json:"held"`  // all, also those beyond --limit
	Away       []away   `json:"away"`
	SlotsMoved bool     `json:"slots_moved"` // meanwhile, so keys may be missing, or counted twice

	waiting int // other processes, for all that is held
}

func locks(j *job) error {
	seen, err := j.holders()
	if err != nil {
		return err
	}
	j.warnOfMoves()
	if j.json {
		err = j.printJSON(seen)
	} else {
		j.printLook(j.out, seen)
	}
	return cmp.Or(err, found(seen.Away))
}

// holders looks for all sessions that are held.
func (j *job) holders() (look, error) {
	held := []holder{}
	gone, err := j.lookAtAll(func(n *node, after func(seen int)) error {
		var here []holder
		err := n.sweep(j.ctx, j.pattern(".lock"), search, func(keys []string) (bool, error) {
			found, err := j.holdersOf(n, keys)
			here = append(here, found...)
			return true, err
		}, after)
		if err == nil {
			held = append(held, here...)
		}
		return err
	})
	slices.SortStableFunc(held, func(a, b holder) int { return cmp.Compare(b.Held, a.Held) })
	seen := look{Locks: held, Held: len(held), Away: gone, SlotsMoved: j.slotsMoved}
	for _, h := range held {
		seen.waiting += h.Waiting
	}
	if j.limit > 0 {
		seen.Locks = held[:min(j.limit, len(held))]
	}
	return seen, err
}

// partOf is the command that reads a lock or its queue. Another program may have written a value of any size: that must not
// fill the memory of this one. In 64 KB there is room for the places of 500 processes.
func partOf(key string) []string { return []string{"GETRANGE", key, "0", "65535"} }

const noKey = -2 // what PTTL says

// holdersOf reads locks by their keys.
func (j *job) holdersOf(n *node, keys []string) (held []holder, _ error) {
	var commands [][]string
	var ids []string
	for _, key := range keys {
		if what, id := j.parseKey(key); what == lock {
			ids = append(ids, id)
			commands = append(commands, partOf(key), []string{"PTTL", key}, partOf(key+".queue"))
		}
	}
	replies := j.redis.doAll(j.ctx, n.client, commands)
	now := time.Now()
	for i, id := range ids {
		value, err := replies[3*i].ToString()
		left, _ := replies[3*i+1].AsInt64()
		queue := textOf(replies[3*i+2])
		switch {
		case err == nil && value == "" && left == noKey: // it is free by now
		case err == nil:
			held = append(held, newHolder(id, value, queue, time.Duration(left)*time.Millisecond, now))
		case !rueidis.IsRedisNil(err) && !isWrongType(err) && !hasMoved(err):
			return nil, err
		}
	}
	return held, nil
}

// textOf returns the text of a reply, or "" if there is none. If Redis has refused the command, ToString returns the refusal.
func textOf(reply rueidis.RedisResult) string {
	text, err := reply.ToString()
	if err != nil {
		return ""
	}
	return text
}

func (j *job) printLook(w io.Writer, seen look) {
	switch {
	case len(seen.Locks) > 0:
		j.printHolders(w, seen.Locks)
		if len(seen.Locks) < seen.Held {
			fmt.Fprintf(w, "%s held; --limit 0 shows all\n", plural(int64(seen.Held), "session"))
		}
	default:
		fmt.Fprintln(w, j.noneHeld()+asFarAsKnown(len(seen.Away) > 0))
	}
	printAway(w, seen.Away)
}

func (j *job) printHolders(w io.Writer, all []holder) {
	rows := [][]string{{"SESSION", ">HELD FOR", ">PROCESSES WAITING", ">LEASE", "PROCESS", "REQUEST"}}
	for _, h := range all {
		rows = append(rows, []string{h.Session, h.held(), strconv.Itoa(h.Waiting),
			h.lease(), h.who(), cmp.Or(h.Request, "-")})
	}
	table(w, j.out.columns(), rows)
}

// noneHeld names the prefix, since with a wrong one all seems to be calm.
func (j *job) noneHeld() string {
	return fmt.Sprintf("no session with the prefix %q is held", j.prefix)
}

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

const locksAbout = `Shows which sessions are held now, the longest first: since when, by which
process and request, what is left of the lease, which a live holder extends,
and how many processes (not requests) wait.
It looks for locks by SCAN on each master, with pauses.
`

func locks(j *job) error {
	held, err := j.holders()
	if err != nil {
		return err
	}
	if j.json {
		return j.printJSON(held)
	}
	printHolders(j.out, held)
	return nil
}

// holders returns the holders of sessions, the longest first.
func (j *job) holders() ([]holder, error) {
	nodes, err := j.redis.masters(j.ctx)
	if err != nil {
		return nil, err
	}
	held := []holder{}
	for _, n := range nodes {
		wanted := func() bool { return j.limit == 0 || len(held) < j.limit }
		err := n.sweep(j.ctx, j.pattern(".lock"), search, func(keys []string) (bool, error) {
			found, err := j.holdersOf(n, keys)
			held = append(held, found...)
			return wanted(), err
		}, func(int) {})
		if err != nil {
			return nil, err
		}
		if !wanted() {
			held = held[:j.limit]
			break
		}
	}
	slices.SortStableFunc(held, func(a, b holder) int { return cmp.Compare(b.Held, a.Held) })
	return held, nil
}

// holdersOf reads locks by their keys.
func (j *job) holdersOf(n *node, keys []string) (held []holder, _ error) {
	var commands [][]string
	var ids []string
	for _, key := range keys {
		if what, id := j.parseKey(key); what == lock {
			ids = append(ids, id)
			commands = append(commands, []string{"GET", key}, []string{"PTTL", key}, []string{"GET", key + ".queue"})
		}
	}
	replies := j.redis.doAll(j.ctx, n.client, commands)
	now := time.Now()
	for i, id := range ids {
		value, err := replies[3*i].ToString()
		left, _ := replies[3*i+1].AsInt64()
		queue, _ := replies[3*i+2].ToString()
		switch {
		case err == nil:
			held = append(held, newHolder(id, value, queue, time.Duration(left)*time.Millisecond, now))
		case !rueidis.IsRedisNil(err) && !isWrongType(err) && !hasMoved(err):
			return nil, err
		}
	}
	return held, nil
}

func printHolders(w io.Writer, held []holder) {
	if len(held) == 0 {
		fmt.Fprintln(w, "no session is held")
		return
	}
	rows := [][]string{{"SESSION", ">HELD FOR", "PROCESS", "REQUEST", ">LEASE", ">WAITING"}}
	for _, h := range held {
		rows = append(rows, []string{h.Session, h.held(), h.who(), cmp.Or(h.Request, "-"),
			roughly(time.Duration(h.Lease * float64(time.Second))), strconv.Itoa(h.Waiting)})
	}
	table(w, rows)
}

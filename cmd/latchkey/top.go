package main

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

const topAbout = `Shows the busiest sessions of all processes, every second, until it is
interrupted: in what share of the last 60 looks each was held, how many other
processes wait now, and who holds it, or has held it last. Requests that wait in
the holder's own process are not counted: the page of Sessions.Debug of that
process shows them.
With a million sessions in Redis one look takes about 20 seconds; the next
follows a second later.
A look sees only what is held at its moment, so the share is an estimate, and a
session that is only held briefly appears after some looks.
With --json each look is a line. On a terminal q ends it, too, after the first
look, unless TERM is dumb.
`

// top looks at the sessions again and again.
func top(j *job) error {
	r := &ranking{known: make(map[string]*busy)}
	var gone []away
	complete, err := j.live(j.count, func() (p picture, err error) {
		if gone, err = j.lookAt(r); err == nil {
			p = j.topPicture(r, gone, time.Now())
		}
		return p, err
	})
	if complete && err == nil {
		err = found(gone)
	}
	return err
}

// lookAt adds a look to r.
func (j *job) lookAt(r *ranking) ([]away, error) {
	var held []holder
	seen := make(map[string]bool) // masters
	gone, err := j.lookAtAll(func(n *node, after func(seen int)) error {
		here, err := j.lookAtMaster(n, r, after)
		held = append(held, here...)
		seen[n.address] = err == nil
		return err
	})
	if err == nil {
		for _, a := range gone {
			seen[a.Address] = false
		}
		r.add(held, func(b *busy) bool { return seen[b.node] }, time.Now())
	}
	return gone, err
}

// lookAtMaster finds the sessions that are held, and then looks at all that are known.
func (j *job) lookAtMaster(n *node, r *ranking, after func(seen int)) (held []holder, _ error) {
	err := n.sweep(j.ctx, j.pattern(".lock"), search, func(keys []string) (bool, error) {
		for _, key := range keys {
			if what, id := j.parseKey(key); what == lock {
				r.find(id, n.address)
			}
		}
		return true, nil
	}, after)
	if err != nil {
		return nil, err
	}
	var keys []string
	for id, b := range r.known {
		if key := j.recordKey(id) + ".lock"; n.owns(key) {
			b.node = n.address // another after a failover, or if its slot has moved
			keys = append(keys, key)
		}
	}
	for some := range slices.Chunk(keys, batch) {
		found, err := j.holdersOf(n, some)
		if err != nil {
			return nil, err
		}
		held = append(held, found...)
	}
	return held, nil
}

func (j *job) topPicture(r *ranking, gone []away, now time.Time) picture {
	all := r.busiest()
	held, waiting := 0, 0
	for _, b := range all {
		waiting += b.Waiting
		if b.State == "held" {
			held++
		}
	}
	looks, period := r.period()
	var b strings.Builder
	fmt.Fprintf(&b, "%s; %s", headline(now, held, waiting, gone), plural(int64(looks), "look"))
	if looks > 1 {
		fmt.Fprintf(&b, " in %s", roughly(period))
	}
	b.WriteString("\n")
	total := len(all)
	if j.limit > 0 && total > j.limit {
		all = all[:j.limit]
	}
	printAway(&b, gone)
	switch {
	case len(all) > 0:
		j.printBusiest(&b, all)
		if len(all) < total {
			fmt.Fprintf(&b, "%s were held; --limit 0 shows all\n", plural(int64(total), "session"))
		}
	case len(gone) == 0:
		b.WriteString(j.noneHeld() + "\n")
	}
	return picture{b.String(), struct {
		At       time.Time `json:"at"`
		Looks    int       `json:"looks"`
		Period   float64   `json:"period_seconds"`
		Sessions []*busy   `json:"sessions"`       // the busiest first; at most --limit
		Total    int       `json:"total_sessions"` // also those beyond --limit
		Away     []away    `json:"away"`
	}{now.UTC().Truncate(time.Millisecond), looks, seconds(period), all, total, gone}}
}

func (j *job) printBusiest(w *strings.Builder, all []*busy) {
	rows := [][]string{{"SESSION", ">BUSY", ">PROCESSES WAITING", ">HELD FOR", "PROCESS", "REQUEST"}}
	for _, b := range all {
		waiting, state := strconv.Itoa(b.Waiting), b.State
		switch {
		case b.State == "held":
			state = b.held()
		case b.State == "unknown":
			waiting = "-"
		}
		rows = append(rows, []string{b.Session, fmt.Sprintf("%.0f %%", 100*b.Busy), waiting, state, b.who(), cmp.Or(b.Request, "-")})
	}
	table(w, j.out.columns(), rows)
}

package main

import (
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/a2139e8d/latchkey/internal/records"
	"github.com/a2139e8d/latchkey/store"
	"github.com/redis/rueidis"
)

// A purge is one run of end --all. It ends each session that was there when it began, also under an ID that the session
// has got since: SCAN need not find that ID.
type purge struct {
	*job
	store  *store.Store
	missed bool // even the last pass may have missed sessions, since it took so long, or slots moved
	*pass       // the last one
	ended  []string
}

// A pass of a purge looks at all keys. It finds what the passes before have missed, so only the last one says what is
// left.
type pass struct {
	bar     *progress
	begun   time.Time
	seen    int64 // keys that were looked at on the masters before this one
	away    []away
	gone    int64 // tombstones: somebody has ended sessions, or given them new IDs
	foreign int64 // records that are left as they are

	mu        sync.Mutex
	unknowns  int64 // IDs that only another key tells
	unreached int64 // new IDs on another master, which did not end them
}

// tombstoneTime is how long an old ID leads to the new one.
const tombstoneTime = time.Minute

// longPass is how long a pass may take: a tombstone that was made meanwhile is still there when SCAN comes to it.
const longPass = tombstoneTime / 2

const maxPasses = 5

func (j *job) endAll(st *store.Store) error {
	p := &purge{job: j, store: st}
	err := p.passes(p.sweep)
	if err != nil && len(p.ended) == 0 {
		return err
	}
	if failed := p.print(err); failed != nil {
		return failed
	}
	failed := p.failed()
	if err != nil {
		return err
	}
	return failed
}

// passes sweeps all masters, until one pass was so short that it has missed no session, and no slot has moved to a master
// that was swept before.
func (p *purge) passes(sweep func(n *node) error) error {
	for range maxPasses {
		if err := p.onePass(sweep); err != nil {
			return err
		}
		if time.Since(p.begun) <= longPass && !p.slotsMoved {
			return nil
		}
	}
	p.missed = true
	return nil
}

func (p *purge) onePass(sweep func(n *node) error) error {
	p.pass = &pass{begun: time.Now(), away: []away{}}
	masters, err := p.redis.masters(p.ctx)
	if err != nil {
		return err
	}
	p.bar = newProgress(p.out.stderr, p.countKeys(masters))
	defer p.bar.end()
	away, err := p.each(masters, sweep)
	if err == nil {
		p.away = away
	}
	return err
}

// sweep ends the sessions of one master.
func (p *purge) sweep(n *node) error {
	looked := 0
	defer func() { p.seen += int64(looked) }()
	return n.sweep(p.ctx, p.pattern(""), batch, func(keys []string) (bool, error) {
		ids, err := p.choose(n, keys)
		if err != nil {
			return false, err
		}
		return true, p.endThese(ids)
	}, func(seen int) {
		looked = seen
		p.bar.set(p.seen + int64(seen))
	})
}

// choose returns the IDs of sessions among some keys, and the old IDs of sessions that have got a new one since the
// pass began. SCAN finds a new ID that was there before the pass, so tombstones from before are left out. The age of
// a tombstone is computed from its time to live, since the clocks of several machines differ.
func (p *purge) choose(n *node, keys []string) (ids []string, _ error) {
	var all []string
	var commands [][]string
	for _, key := range keys {
		if what, id := p.parseKey(key); what == record {
			all = append(all, id)
			commands = append(commands, []string{"GETRANGE", key, "0", strconv.Itoa(headSize)}, []string{"PTTL", key})
		}
	}
	const uncertain = time.Second
	replies := p.redis.doAll(p.ctx, n.client, commands)
	for i, id := range all {
		text, err := replies[2*i].ToString()
		if err != nil && !isGone(err) {
			return nil, err
		}
		left, err := replies[2*i+1].AsInt64()
		if err != nil && !isGone(err) {
			return nil, err
		}
		h, _ := parseHead(text)
		if h.gone {
			p.gone++
		}
		isNew := tombstoneTime-time.Duration(left)*time.Millisecond < time.Since(p.begun)+uncertain
		if !h.gone || h.renewed && isNew {
			ids = append(ids, id)
		}
	}
	return ids, nil
}

// endThese ends sessions. A session that ends by itself meanwhile is no failure.
func (p *purge) endThese(ids []string) error {
	oneServer := p.redis.client.Mode() != rueidis.ClientModeCluster
	for _, err := range p.tryEachID(ids, oneServer, p.endOrFollow) {
		switch {
		case p.ctx.Err() != nil:
			return errInterrupted
		case errors.Is(err, store.ErrCorrupt):
			p.foreign++
		case err != nil && !errors.Is(err, errNotTried) && !errors.Is(err, store.ErrGone) && !errors.Is(err, store.ErrNotFound):
			return err
		}
	}
	return nil
}

// endOrFollow ends a session under the ID that it has now, whoever has logged in to it. If the master of that ID is
// away, the master of the old ID is not to blame. The error wraps store.ErrCorrupt if another program has written the
// session's record or its user's mark, or tombstones that lead in a circle. If it has written the user's list, the script
// ends the session, and fails after that.
func (p *purge) endOrFollow(old string) error {
	const mostMoves = 100 // of one session in a minute
	id := old
	for range mostMoves {
		err := records.Of(p.store).End(p.ctx, id)
		ended, foreign := err == nil, isWrongType(err)
		if foreign || errors.Is(err, store.ErrGone) {
			_, _, err = records.Of(p.store).Peek(p.ctx, id, p.terms())
		}
		moved, isMoved := errors.AsType[*records.Moved](err)
		switch {
		case ended, foreign && errors.Is(err, store.ErrGone) && !isMoved:
			p.mu.Lock()
			defer p.mu.Unlock()
			p.ended = append(p.ended, id)
			return nil
		case foreign:
			return store.ErrCorrupt
		case isMoved && isID(moved.To):
			id = moved.To
		case isMoved && moved.To == "":
			return p.count(&p.unknowns)
		case isMoved:
			return store.ErrCorrupt
		case id != old && errors.Is(err, store.ErrUnavailable) && p.ctx.Err() == nil:
			return p.count(&p.unreached)
		default:
			return p.ofEnd(err, p.recordKey(id), "it is ended")
		}
	}
	return store.ErrCorrupt
}

func (p *pass) count(what *int64) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	*what++
	return nil
}

// print prints what was ended before err. After an error it is not known which masters are away.
func (p *purge) print(err error) error {
	if p.json {
		return p.printJSON(struct {
			Ended    []string `json:"ended"`
			Away     []away   `json:"away"`
			Complete bool     `json:"complete"`
		}{append([]string{}, p.ended...), p.away, err == nil && len(p.away) == 0 && len(p.left()) == 0})
	}
	printAway(p.out, p.away)
	fmt.Fprintf(p.out, "%s ended\n", plural(int64(len(p.ended)), "session"))
	return nil
}

// failed says on stderr which sessions may be left, and returns errFound if there are any, or a master is away.
func (p *purge) failed() error {
	left := p.left()
	for _, text := range left {
		fmt.Fprintln(p.out.stderr, "latchkey: "+text)
	}
	switch {
	case len(left) > 0 || len(p.away) > 0:
		return errFound
	case len(p.ended) == 0 && p.gone == 0: // otherwise the prefix is right
		fmt.Fprintln(p.out.stderr, p.prefixHint())
	}
	return nil
}

// left says what is left on the masters that have replied.
func (p *purge) left() (all []string) {
	switch {
	case p.missed && p.slotsMoved:
		all = append(all, fmt.Sprintf("slots moved between masters during the last of %d looks at all keys, so some sessions may be alive; "+
			"run it again when that has ended; if it does not end, latchkey doctor says what to do", maxPasses))
	case p.missed:
		all = append(all, fmt.Sprintf("each of %d looks at all keys took longer than %v, so sessions that got a new ID meanwhile "+
			"may be alive; run it again when Redis is less busy", maxPasses, longPass))
	}
	switch {
	case p.foreign == 1:
		all = append(all, "1 record is left as it is, since "+errForeign.Error()+"; latchkey stats names some")
	case p.foreign > 1:
		all = append(all, plural(p.foreign, "record")+" are left as they are, since another program has written them, "+
			"or another version; latchkey stats names some")
	}
	if p.unreached > 0 {
		all = append(all, plural(p.unreached, "session")+" got a new ID on a master that is away, and may be alive")
	}
	if p.unknowns > 0 {
		why := nameTheKeys
		if len(p.keys) > 0 {
			why = "their keys are not in " + p.keysFile
		}
		what := "1 ID was replaced meanwhile by one that is not known; its session may be alive"
		if p.unknowns > 1 {
			what = grouped(p.unknowns) + " IDs were replaced meanwhile by IDs that are not known; their sessions may be alive"
		}
		all = append(all, what+"; run it again with all keys: "+
			printable(why))
	}
	return all
}

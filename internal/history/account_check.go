package history

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// check returns nil if there is an order of a user's requests in which all responses are right. Otherwise
// the error shows the longest order that was found.
func (l *life) check(sound bool) error {
	for _, r := range l.done {
		for _, label := range r.got.labels {
			if label < 0 || label >= l.logins {
				return fmt.Errorf("a list shows a session %d that nobody has begun", label)
			}
		}
	}
	p := &puzzle{moves: l.moves(sound), seen: make(map[position]bool)}
	if len(p.moves) > 64*len(position{}.done) {
		return fmt.Errorf("%d requests are too many for the checker", len(p.moves))
	}
	if p.solve(position{}) {
		return nil
	}
	if len(p.seen) > puzzled {
		return errors.New("the checker has reached no verdict")
	}
	return p.explain()
}

// moves returns the moves that must be ordered.
func (l *life) moves(sound bool) (all []move) {
	all = l.claims()
	for _, r := range l.done {
		if r.op.what != list {
			all = append(all, move{client: r.client, deed: r.op, got: r.got, call: r.call, back: r.back,
				sound: sound, slack: l.underWay(r, -1), beside: l.beside(r), spared: l.spared(r)})
			if r.got.user != "" && r.got.status != http.StatusOK { // the handler has seen it, whatever the response was
				all = append(all, move{client: r.client, deed: deed{what: saw, cookie: r.op.cookie, label: r.op.label}, got: r.got, call: r.call, back: r.back})
			}
			continue
		}
		for label := range l.logins {
			shown := slices.Contains(r.got.labels, label)
			if !r.got.known || shown && l.underWay(r, label) > 0 {
				continue
			}
			all = append(all, move{client: r.client, deed: deed{what: list, label: label}, got: r.got, call: r.call, back: r.back, shown: shown, doubtful: l.doubtful(r)})
		}
	}
	slices.SortStableFunc(all, func(a, b move) int { return cmp.Compare(a.back, b.back) })
	return all
}

// claims returns a move for each cookie. The move claims the cookie's session. It may come as soon as the first request
// with that cookie was sent.
func (l *life) claims() (all []move) {
	first := make(map[string]int)
	for _, r := range l.done {
		if r.op.cookie == "" || r.op.what == end || r.op.what == endAll {
			continue
		}
		i, known := first[r.op.cookie]
		if !known {
			i = len(all)
			first[r.op.cookie] = i
			all = append(all, move{client: r.client, deed: deed{what: claims, cookie: r.op.cookie, label: r.op.label}, call: r.call, back: never})
		}
		all[i].call = min(all[i].call, r.call)
	}
	return all
}

// underWay returns how many requests that change the ID of a session may have had two IDs on the list
// while r was made. It counts only requests of the session with the given label, or of all sessions if
// label is negative.
func (l *life) underWay(r record, label int) (n int) {
	for _, other := range l.done {
		moves := other.op.what == renew || other.op.what == Login
		failed := !other.got.known || other.got.status != 200
		if moves && other.call < r.back && (failed || other.back > r.call) && (label < 0 || other.op.label == label) {
			n++
		}
	}
	return n
}

// doubtful returns the cookies of logins that may have replaced a session, before r was over, and that no client knows.
func (l *life) doubtful(r record) (cookies []string) {
	for _, other := range l.done {
		if other.op.what == Login && other.call < r.back && (!other.got.known || other.got.status != 200) {
			cookies = append(cookies, other.op.cookie)
		}
	}
	return cookies
}

// beside reports whether an EndAll may have been done while r was under way, or so shortly before that the server of r,
// which knows Redis's clock by a reply in r, takes it for later: see internal/records/clock.go.
func (l *life) beside(r record) bool {
	return slices.ContainsFunc(l.done, func(other record) bool {
		return other.op.what == endAll && other.call < r.back && (!other.got.known || other.back > r.call-(r.back-r.call))
	})
}

// spared reports whether an EndAll has spared the session while r changed its ID.
func (l *life) spared(r record) bool {
	return (r.op.what == renew || r.op.what == Login) && slices.ContainsFunc(l.done, func(other record) bool {
		return other.op.what == endAll && other.op.cookie != "" && other.op.cookie == r.op.cookie && other.call < r.back && other.back > r.call
	})
}

// A puzzle is the search for an order. It is the usual depth-first search, which visits each position
// once, with one more rule: a move that is right and can never change anything is made at once, since it
// blocks no other move. Without that rule, lists and reads would make the search endless.
type puzzle struct {
	moves []move // sorted by their ends
	seen  map[position]bool
	best  position
	far   int // how many moves the best order has
}

// puzzled is the number of positions after which the search is abandoned.
const puzzled = 300_000

// A position is the set of moves that were made, and the state after them.
type position struct {
	done [8]uint64
	s    accounts
}

func (at *position) has(i int) bool { return at.done[i/64]>>(i%64)&1 == 1 }
func (at *position) add(i int)      { at.done[i/64] |= 1 << (i % 64) }

// solve reports whether the remaining moves can be ordered.
func (p *puzzle) solve(at position) bool {
	for p.pass(&at) {
	}
	if p.seen[at] || len(p.seen) > puzzled {
		return false
	}
	p.seen[at] = true
	made, over := 0, true
	for i := range p.moves {
		if at.has(i) {
			made++
		} else if p.moves[i].back != never {
			over = false
		}
	}
	if over {
		return true
	}
	if made > p.far {
		p.best, p.far = at, made
	}
	for i := range p.next(&at) {
		then := at
		then.add(i)
		after, right := p.moves[i].from(at.s)
		if !right || after == at.s && !p.moves[i].got.known {
			continue
		}
		then.s = after
		if p.solve(then) {
			return true
		}
		if p.moves[i].spared && then.s.forget(p.moves[i].got.cookie) && p.solve(then) {
			return true
		}
	}
	return false
}

// pass makes the moves that are right and change nothing.
func (p *puzzle) pass(at *position) (some bool) {
	for i := range p.next(at) {
		if !p.moves[i].looks() {
			continue
		}
		if _, right := p.moves[i].from(at.s); right {
			at.add(i)
			some = true
		}
	}
	return some
}

// next yields the moves that may come next: a move may, if it began before any remaining move had ended.
func (p *puzzle) next(at *position) func(yield func(int) bool) {
	limit := int64(never)
	for i := range p.moves {
		if !at.has(i) {
			limit = p.moves[i].back
			break
		}
	}
	return func(yield func(int) bool) {
		for i := range p.moves {
			if !at.has(i) && p.moves[i].call <= limit && !yield(i) {
				return
			}
		}
	}
}

// explain shows the moves of the longest order, and those that cannot follow it.
func (p *puzzle) explain() error {
	lines := []string{"no order explains these requests"}
	for i := range p.moves {
		if p.best.has(i) {
			lines = append(lines, "  "+p.moves[i].String())
		}
	}
	for i, s := range p.best.s {
		if s.cookie != "" {
			lines = append(lines, fmt.Sprintf("then session %d is alive, %s opens it, and its number is %d", i, mark(s.cookie), s.n))
		}
	}
	lines = append(lines, "and none of these can be next:")
	for i := range p.next(&p.best) {
		lines = append(lines, "  "+p.moves[i].String())
	}
	return errors.New(strings.Join(lines, "\n"))
}

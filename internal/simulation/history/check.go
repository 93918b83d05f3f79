package history

import (
	"fmt"
	"iter"
	"maps"
	"slices"
	"time"
)

// A Violation is a broken rule, and the requests that broke it.
type Violation struct {
	Rule     string
	Text     string
	Requests []int // the ones to look at
	Sessions []string
}

func (v Violation) String() string { return v.Rule + ": " + v.Text }

// Check returns the violations of a run, in the order of their requests' numbers.
func Check(t Terms, requests []Request) []Violation {
	h := newHistory(t, requests)
	h.order()
	h.realTime()
	h.endings()
	h.ends()
	h.cookies()
	h.crossings()
	h.followed()
	h.gaveWay()
	h.crowds()
	h.carts()
	h.idle()
	h.bounds()
	if t.Gap > 0 {
		h.gaps()
	}
	if t.Strict {
		h.reasons()
	}
	if t.Exclusion {
		h.exclusion()
		h.queue()
	}
	if t.Turns {
		h.turns()
	}
	return h.violations
}

// A history is the requests, and what follows from them.
type history struct {
	Terms
	all        []Request
	writers    map[int]*Request // by the version they wrote
	depths     map[int]int      // of versions
	effective  map[int]bool     // versions
	bySession  map[string][]*Request
	held       map[string][]*Request // see holders
	beginners  map[string]*Request   // by the ID of the session that they have begun
	contact    map[string]contact    // by the ID of a session
	replacing  []*Request            // logins that may have replaced other sessions
	misses     []Request             // a copy of each request that has asked for a member's session, and got a guest's
	mayEnd     []Ending              // all that may have ended sessions, except Destroy and Renew
	violations []Violation
}

func newHistory(t Terms, requests []Request) *history {
	h := &history{Terms: t, all: requests, writers: make(map[int]*Request), depths: make(map[int]int),
		effective: make(map[int]bool), bySession: make(map[string][]*Request), held: make(map[string][]*Request), beginners: make(map[string]*Request)}
	h.miss()
	for i := range requests {
		r := &requests[i]
		if r.Effect != Nothing {
			h.writers[r.Number] = r
		}
		if r.SetID != "" {
			h.beginners[r.SetID] = r
		}
		for _, id := range r.sessions() {
			h.bySession[id] = append(h.bySession[id], r)
		}
	}
	for i := range requests {
		if r := &requests[i]; r.Outcome == Answered {
			h.affect(r.version())
		}
	}
	h.contacts()
	for i := range requests {
		if l := &requests[i]; h.MaxSessions > 0 && h.adds(l) || len(h.takenOver(l)) > 0 {
			h.replacing = append(h.replacing, l)
		}
	}
	h.mayEnd = slices.Concat(h.Endings, h.movedEndings(), h.ownEndings(), h.claimEndings(), h.evictions())
	return h
}

// miss notes which requests have not found a member's session, and asked for the guest's then. That is one more
// request that found nothing.
func (h *history) miss() {
	for _, r := range h.all {
		if id := r.missed(); id != "" && id != r.Cookie {
			h.misses = append(h.misses, Request{Number: r.Number, Process: r.Process, Life: r.Life, Cookie: id, Began: r.Began,
				Asked: r.Asked, Open: r.waits(), End: r.End, Done: r.Done, New: true, Outcome: r.Outcome, tookTurn: r.Exclusive})
		}
	}
	for i := range h.misses {
		m := &h.misses[i]
		h.bySession[m.Cookie] = append(h.bySession[m.Cookie], m)
	}
}

// ids returns the IDs of the sessions, sorted.
func (h *history) ids() []string { return slices.Sorted(maps.Keys(h.bySession)) }

// sessions returns the IDs of the sessions that a request deals with.
func (r *Request) sessions() (ids []string) {
	for _, id := range []string{r.Cookie, r.SetID} {
		if id != "" && !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	return ids
}

// version is the newest version that a request knows of: its own, or the one that it saw.
func (r *Request) version() int {
	if r.Effect != Nothing {
		return r.Number
	}
	return last(r.Saw)
}

// parent returns the version on which another was built, or 0 if there is none.
func (h *history) parent(version int) int {
	if w := h.writers[version]; w != nil {
		return last(w.Saw)
	}
	return 0
}

// chain yields a version, then the one on which it was built, and so on to the first.
func (h *history) chain(version int) iter.Seq[int] {
	return func(yield func(int) bool) {
		v := version
		for range len(h.all) + 1 { // a broken history may have a circle
			if v == 0 || !yield(v) {
				return
			}
			v = h.parent(v)
		}
	}
}

// affect notes that a version took effect, and so did all versions on which it was built.
func (h *history) affect(version int) {
	for v := range h.chain(version) {
		if h.effective[v] {
			return
		}
		h.effective[v] = true
	}
}

// depth returns the number of versions before one.
func (h *history) depth(version int) int {
	if version == 0 {
		return 0
	}
	if d, ok := h.depths[version]; ok {
		return d
	}
	h.depths[version] = 0 // in case there is a circle
	d := h.depth(h.parent(version)) + 1
	h.depths[version] = d
	return d
}

// root returns the first version in the chain of another.
func (h *history) root(version int) int {
	for version = range h.chain(version) {
	}
	return version
}

// credible reports whether a request's view of the session counts: it was answered, so what it saw must
// have been stored.
func (r *Request) credible() bool { return r.Outcome == Answered && r.Open > 0 }

// broken adds a violation.
func (h *history) broken(rule string, involved []*Request, format string, args ...any) {
	v := Violation{Rule: rule, Text: fmt.Sprintf(format, args...)}
	for _, r := range involved {
		if r != nil {
			v.Requests = append(v.Requests, r.Number)
			for _, id := range append(r.sessions(), r.Member) {
				if id != "" && !slices.Contains(v.Sessions, id) {
					v.Sessions = append(v.Sessions, id)
				}
			}
		}
	}
	h.violations = append(h.violations, v)
}

func with(rs ...*Request) []*Request { return rs }

// ms formats a time for readers.
func ms(d time.Duration) string { return fmt.Sprintf("%.3f ms", float64(d)/1e6) }

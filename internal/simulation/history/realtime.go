package history

import "time"

// realTime judges that a request which asks after the response to another one sees at least what that one
// saw or wrote.
func (h *history) realTime() {
	lines := make(map[int][]*Request) // by the root of their versions
	for i := range h.all {
		if r := &h.all[i]; r.credible() && r.version() != 0 {
			root := h.root(r.version())
			lines[root] = append(lines[root], r)
		}
	}
	for i := range h.all {
		y := &h.all[i]
		if !y.credible() || y.New || last(y.Saw) == 0 {
			continue
		}
		saw, asked := h.depth(last(y.Saw)), h.asked(y)
		for _, x := range lines[h.root(last(y.Saw))] {
			if x.End < asked && h.depth(x.version()) > saw && !h.lost(y.Cookie, x.Asked, y.Open) {
				h.broken("an answer is seen by all who ask later", with(x, y), "#%d was answered with version %d at %s; #%d asked at %s and saw %d",
					x.Number, x.version(), ms(x.End), y.Number, ms(y.Asked), last(y.Saw))
				break
			}
		}
	}
}

// asked returns when a request may have asked for the record that it got: see Terms.Swaps.
func (h *history) asked(r *Request) time.Duration {
	asked := r.Asked
	if !h.Swaps || r.Exclusive {
		return asked
	}
	for _, other := range h.bySession[r.Cookie] {
		underWay := other.Asked < r.Asked && (other.Open == 0 || other.Open > r.Asked)
		if underWay && !other.Exclusive && other.Process == r.Process && other.Life == r.Life {
			asked = min(asked, other.Asked)
		}
	}
	return asked
}

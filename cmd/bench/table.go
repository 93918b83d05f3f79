package main

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/a2139e8d/latchkey/cmd/bench/app"
)

// table returns the results of one cell, as Markdown: a row for each peer, and a column for each figure that
// any peer has.
func (r *result) table() string {
	columns := slices.DeleteFunc(allFigures(), func(f figure) bool { return !r.has(f) })
	head := []string{"", "rounds", "kept"}
	for _, f := range columns {
		head = append(head, f.name)
	}
	floor := r.find(app.Floor)
	if floor != nil {
		head = append(head, "added, ms", "added CPU, µs")
	}
	compared, _, _ := strings.Cut(r.figure.name, ",") // a ratio has no unit
	head = append(head, "Latchkey ÷ peer: "+compared)
	rows := [][]string{head}
	for _, o := range r.peers {
		title := r.title(o)
		if !o.peer.Locks && o != floor {
			title += ", no lock"
		}
		row := []string{title, o.rounds(), o.keptText()}
		for _, f := range columns {
			row = append(row, o.text(f))
		}
		if floor != nil {
			row = append(row, o.addedText(floor, middle), o.addedText(floor, allCPU))
		}
		rows = append(rows, append(row, r.ratioText(o)))
	}
	about := r.about
	if r.delay > 0 {
		about += fmt.Sprintf("; a round trip to Redis takes %v longer", r.delay)
	}
	return fmt.Sprintf("### %s\n\n%s.\n\n%s\n", r.cell, about, markdown(rows))
}

// markdown returns a table. Its first row is the head, and its first column has names.
func markdown(rows [][]string) string {
	var b strings.Builder
	for i, row := range rows {
		fmt.Fprintf(&b, "| %s |\n", strings.Join(row, " | "))
		if i == 0 {
			fmt.Fprintf(&b, "|---|%s\n", strings.Repeat("--:|", len(row)-1))
		}
	}
	return b.String()
}

func (r *result) has(f figure) bool {
	return slices.ContainsFunc(r.peers, func(o *outcome) bool {
		return slices.ContainsFunc(o.of(f), func(v float64) bool { return v != 0 })
	})
}

func (r *result) title(o *outcome) string {
	if r.alone {
		return o.peer.Lock
	}
	return o.peer.Title
}

// find returns the outcome of a peer, or nil. With -against, it returns that of this tree, which comes first.
func (r *result) find(name string) *outcome {
	for _, o := range r.peers {
		if o.peer.Name == name {
			return o
		}
	}
	return nil
}

// rounds returns the number of rounds, and why there were no more.
func (o *outcome) rounds() string {
	switch {
	case o.err != nil:
		return fmt.Sprintf("%d: %v", len(o.samples), o.err)
	case o.stalled > 0:
		return fmt.Sprintf("%d; stalled once", len(o.samples))
	default:
		return fmt.Sprint(len(o.samples))
	}
}

func (o *outcome) text(f figure) string {
	if len(o.samples) == 0 {
		return "–"
	}
	v := median(o.of(f))
	if v == 0 {
		return "–"
	}
	return number(v)
}

func (o *outcome) keptText() string {
	share, ok := o.kept()
	if !ok {
		return "–"
	}
	return number(percentage(share)) + " %"
}

// percentage never rounds up to 100: a small loss is a loss.
func percentage(share float64) float64 {
	if share < 1 {
		return min(100*share, 99.9)
	}
	return 100
}

// addedText returns what the peer adds to the floor.
func (o *outcome) addedText(floor *outcome, f figure) string {
	if o == floor {
		return ""
	}
	all := differences(o, floor, f)
	if len(all) == 0 {
		return "–"
	}
	return number(median(all))
}

// ratioText compares Latchkey with another peer.
func (r *result) ratioText(o *outcome) string {
	ours := r.find(app.Latchkey)
	if ours == nil || ours == o {
		return ""
	}
	all := ratios(ours, o, r.figure)
	if len(all) == 0 {
		return "–"
	}
	return withRange(all)
}

// withRange returns the median of the numbers, with the smallest and the largest.
func withRange(numbers []float64) string {
	if len(numbers) == 1 {
		return fmt.Sprintf("**%s**", number(numbers[0]))
	}
	return fmt.Sprintf("**%s** (%s–%s)", number(median(numbers)), number(slices.Min(numbers)), number(slices.Max(numbers)))
}

// withLikely returns the median of the numbers, with the range that likely returns.
func withLikely(numbers []float64) string {
	low, high := likely(numbers)
	return fmt.Sprintf("**%.2f** (%.2f–%.2f)", median(numbers), low, high)
}

// number writes two decimals, or three digits in all, or two digits if two decimals would leave nothing.
func number(f float64) string {
	switch {
	case math.IsInf(f, 1):
		return "∞"
	case f > 0 && f < 0.095:
		return fmt.Sprintf("%.2g", f)
	case f < 10:
		return fmt.Sprintf("%.2f", f)
	case f < 100:
		return fmt.Sprintf("%.1f", f)
	default:
		return fmt.Sprintf("%.0f", f)
	}
}

package main

import (
	"fmt"
	"io"
	"maps"
	"runtime"
	"slices"
	"strings"
)

// report prints all results as Markdown.
func report(out io.Writer, c config, redisVersion string, results []result) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s/%s, %d CPUs, %s, Redis %s; %d rounds of %v, medians.\n\n",
		runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), runtime.Version(), redisVersion, c.rounds, c.time)
	for _, r := range results {
		fmt.Fprintf(&b, "- **%s**: %s.\n", r.name, r.about)
	}
	b.WriteString("\n| workload | peer | median | min | max | latchkey / peer | kept | CPU µs per request: process | Redis | Redis commands per request |\n")
	b.WriteString("|---|---|--:|--:|--:|--:|--:|--:|--:|--:|\n")
	for _, r := range results {
		for _, o := range r.peers {
			fmt.Fprintf(&b, "| %s | %s | %s %s | %s | %s | %s | %s | %.0f | %.0f | %.2f |\n", r.name, o.peer.name,
				number(median(o.figures)), r.unit, number(slices.Min(o.figures)), number(slices.Max(o.figures)),
				r.ratio(o), o.keptOf(),
				o.perRequest(o.cost.process.Microseconds()), o.perRequest(o.cost.redis.Microseconds()),
				o.perRequest(int64(o.cost.total())))
		}
	}
	b.WriteString("\nThe ratio is that of one round, its median, and in brackets its range;" +
		" with req/s more is better, with ms less.\n" +
		"Commands that scripts call are counted like those that clients send:\n\n")
	for _, r := range results {
		for _, o := range r.peers {
			fmt.Fprintf(&b, "- %s, %s: %s\n", r.name, o.peer.name, o.commandList())
		}
	}
	_, err := io.WriteString(out, b.String())
	return err
}

// ratio compares Latchkey, the first of all peers, with o, round by round.
func (r result) ratio(o outcome) string {
	latchkey := r.peers[0]
	if o.peer == latchkey.peer {
		return ""
	}
	ratios := make([]float64, len(o.figures))
	for i := range ratios {
		ratios[i] = latchkey.figures[i] / o.figures[i]
	}
	return fmt.Sprintf("**%.2f** (%.2f–%.2f)", median(ratios), slices.Min(ratios), slices.Max(ratios))
}

// keptOf says how many writes were kept where they compete.
func (o outcome) keptOf() string {
	if len(o.kept) == 0 {
		return ""
	}
	least, most := slices.Min(o.kept), slices.Max(o.kept)
	if least == most {
		return fmt.Sprintf("%d of %d", least, rush)
	}
	middle := slices.Sorted(slices.Values(o.kept))[len(o.kept)/2]
	return fmt.Sprintf("%d (%d–%d) of %d", middle, least, most, rush)
}

func (o outcome) commandList() string {
	var list []string
	for _, name := range slices.Sorted(maps.Keys(o.cost.commands)) {
		if n := o.perRequest(int64(o.cost.commands[name])); n >= 0.005 {
			list = append(list, fmt.Sprintf("%s %.2f", name, n))
		}
	}
	return strings.Join(list, ", ")
}

func (o outcome) perRequest(n int64) float64 { return float64(n) / float64(o.requests) }

// number writes three digits or more.
func number(f float64) string {
	if f < 100 {
		return fmt.Sprintf("%.1f", f)
	}
	return fmt.Sprintf("%.0f", f)
}

// median returns the middle of some numbers, which are at least one.
func median(numbers []float64) float64 {
	sorted := slices.Sorted(slices.Values(numbers))
	middle := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[middle]
	}
	return (sorted[middle-1] + sorted[middle]) / 2
}

package plan

import (
	"slices"
	"time"
)

// faults draws some faults of the given kinds, during the time of the requests. late is the longest delay
// of messages for which no client waits.
func faults(d drawer, p *Plan, kinds []Kind, late time.Duration) (drawn []Fault) {
	last := p.Requests[len(p.Requests)-1].At
	count := d.number(1, 6)
	for range count {
		drawn = append(drawn, fault(d, p, kinds[d.IntN(len(kinds))], last, late))
	}
	slices.SortStableFunc(drawn, func(a, b Fault) int { return int(a.At - b.At) })
	return drawn
}

func fault(d drawer, p *Plan, kind Kind, last, late time.Duration) Fault {
	f := Fault{
		Kind:    kind,
		At:      begins/2 + d.below(last),
		Process: Everyone,
		Visitor: d.IntN(p.Visitors),
	}
	if d.chance(0.5) {
		f.Process = d.IntN(p.Processes)
	}
	switch kind {
	case Cut, CutLate, Slow, DoubleCommands, DoubleReplies, Mute:
		f.For = d.within(last/20, 2*last)
		f.Share = d.within01(0.01, 0.3)
		if kind != CutLate && kind != DoubleCommands {
			late = 3*p.Options.Lease + 2*p.Options.Latency
		}
		f.Delay = d.within(p.Options.Latency, late)
	case Panics:
		f.For = d.within(last/20, 2*last)
		f.Share = d.within01(0.001, 0.1)
	case Swap:
		f.For = d.within(last/20, 2*last)
		f.Share = d.within01(0.01, 0.3)
		f.Delay = d.within(p.Options.Latency, p.Options.Timeout)
	case Crash, Partition:
		f.Process = d.IntN(p.Processes)
		f.For = d.within(time.Millisecond, 2*last)
	case Pause:
		f.Process, f.For = Everyone, d.within(time.Millisecond, 3*p.Options.Timeout)
	case RestartKeep, RestartLose, Full, Loading, Replica, Busy, NoPerm, NoChannels:
		f.Process, f.For = Everyone, d.within(time.Millisecond, last)
	}
	return f
}

// within01 is within, for a share.
func (d drawer) within01(low, high float64) float64 {
	return float64(d.within(time.Duration(low*1e9), time.Duration(high*1e9))) / 1e9
}

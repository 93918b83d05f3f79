package main

import (
	"fmt"
	"math"
	"runtime"

	"github.com/a2139e8d/latchkey/cmd/bench/app"
	"github.com/a2139e8d/latchkey/cmd/bench/chart"
)

// A plot is a picture of some cells, and the file that it belongs in.
type plot struct {
	file   string
	chart  chart.Chart
	panels []plotPanel
}

// A plotPanel shows one figure of one cell.
type plotPanel struct {
	workload   string
	n          int
	figure     figure
	name, unit string
	log        bool
}

func plots() []plot {
	return []plot{{
		file: "hot.svg",
		chart: chart.Chart{
			Title: fmt.Sprintf("%d concurrent writes to one session", hotSize),
			About: "milliseconds until all of them are answered; logarithmic",
			Same:  true,
		},
		panels: []plotPanel{
			{"hot", 1, roundTime, "1 process", "ms", true},
			{"hot", 2, roundTime, "2 processes", "ms", true},
			{"hot", 4, roundTime, "4 processes", "ms", true},
		},
	}, {
		file: "commands.svg",
		chart: chart.Chart{
			Title: "What a request costs Redis",
			About: "commands per request, also those that scripts call; logarithmic",
			Same:  true,
		},
		panels: []plotPanel{
			{"spread", 1, commands, "A session each", "64 clients, 1 process", true},
			{"page", 2, commands, "8 at a time", "16 visitors, 2 processes", true},
			{"hot", 1, commands, "100 at a time", "1 process", true},
			{"hot", 4, commands, "100 at a time", "4 processes", true},
		},
	}, {
		file: "lock.svg",
		chart: chart.Chart{
			Title: "The lock alone",
			About: fmt.Sprintf("4 processes of %d goroutines each, all of which take one key, hold it for %d ms, and give it back", aloneGoroutines, aloneHold.Milliseconds()),
		},
		panels: []plotPanel{
			{"lock", 4, throughput, "Throughput", "acquired / s", false},
			{"lock", 4, tail, "Unlucky waiter", "ms, 99 % (log)", true},
			{"lock", 4, unevenness, "Unfairness", "most ÷ least (log)", true},
			{"lock", 4, commands, "Load on Redis", "commands each", false},
		},
	}}
}

// draw returns the plot as SVG. ok is false where one of its cells was not
// measured.
func (p plot) draw(c config, redisVersion string, results []*result) (svg string, ok bool) {
	cells := make([]*result, len(p.panels))
	for i, panel := range p.panels {
		if cells[i] = findCell(results, panel.workload, panel.n); cells[i] == nil {
			return "", false
		}
	}
	p.chart.Rows = cells[0].chartRows()
	for i, panel := range p.panels {
		drawn := chart.Panel{Name: panel.name, Unit: panel.unit, Log: panel.log}
		for _, o := range cells[0].peers {
			drawn.Values = append(drawn.Values, cells[i].value(o.peer, panel.figure))
		}
		p.chart.Panels = append(p.chart.Panels, drawn)
	}
	p.chart.Foot = fmt.Sprintf("Medians of up to %d rounds; %d CPUs for clients, app and Redis together; %s, Redis %s.",
		c.rounds, runtime.NumCPU(), runtime.Version(), redisVersion)
	return p.chart.Draw(), true
}

func findCell(results []*result, workload string, n int) *result {
	for _, r := range results {
		if r.name == workload && r.n == n {
			return r
		}
	}
	return nil
}

// value is NaN where the peer has shown nothing.
func (r *result) value(p app.Peer, f figure) float64 {
	o := r.find(p.Name)
	if o == nil || len(o.turns) == 0 {
		return math.NaN()
	}
	return median(o.of(f))
}

// chartRows returns a row for each peer. Those without a lock are told apart from
// those with one.
func (r *result) chartRows() []chart.Row {
	var rows []chart.Row
	group := ""
	for _, o := range r.peers {
		row := chart.Row{Name: r.title(o), Ours: o.peer.Name == app.Latchkey}
		if share, ok := o.kept(); ok && share < 1 {
			row.Note = fmt.Sprintf("keeps %.0f %%", 100*share)
		}
		if g := r.group(o.peer); g != group {
			row.Group, group = g, g
		}
		rows = append(rows, row)
	}
	return rows
}

// group is empty for Latchkey, and where all peers are locks.
func (r *result) group(p app.Peer) string {
	switch {
	case r.alone || p.Name == app.Latchkey:
		return ""
	case p.Locks:
		return "scs with a lock around each request"
	default:
		return "without a lock"
	}
}

package main

import (
	"fmt"
	"runtime"

	"github.com/a2139e8d/latchkey/cmd/bench/chart"
)

// picture draws what the experiment has shown.
func picture(c config, redisVersion string, trials []trial) string {
	p := chart.Chart{
		Title: "How long to sleep between two tries for a lock",
		About: fmt.Sprintf("%d requests, %d at a time; each holds the one %s lock for a GET, %v, and a SET; medians of %d rounds",
			experimentRequests, experimentWorkers, c.lock, c.hold, c.rounds),
		Foot: fmt.Sprintf("%d CPUs for the requests and Redis together; %s, Redis %s. Who had waited for %v gave up.",
			runtime.NumCPU(), runtime.Version(), redisVersion, patience),
		Panels: []chart.Panel{
			{Name: "Load on Redis", Unit: "calls / request (log)", Log: true},
			{Name: "Release", Unit: "ms, median (log)", Log: true},
			{Name: "Throughput", Unit: "requests / s"},
			{Name: "Unlucky waiter", Unit: "s to take, 99th percentile"},
		},
	}
	figure := []func(figures) float64{
		func(f figures) float64 { return f.roundTrips },
		func(f figures) float64 { return f.release },
		func(f figures) float64 { return f.perSecond },
		func(f figures) float64 { return f.takeP99 / 1000 },
	}
	for i, t := range trials {
		r := chart.Row{Name: t.way.name, Ours: t.way.pause == nil}
		switch {
		case i == 0:
			r.Group = "each request waits for itself; it sleeps"
		case r.Ours && !p.Rows[i-1].Ours:
			r.Group = "it waits for its turn in a queue"
		}
		if gaveUp := t.median(func(f figures) float64 { return f.gaveUp }); gaveUp > 0 {
			r.Note = fmt.Sprintf("%.0f of %d gave up", gaveUp, experimentRequests)
		}
		p.Rows = append(p.Rows, r)
		for j, of := range figure {
			p.Panels[j].Values = append(p.Panels[j].Values, t.median(of))
		}
	}
	return p.Draw()
}

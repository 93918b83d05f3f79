package main

import (
	"fmt"
	"runtime"
)

// picture draws what the experiment has shown.
func picture(c config, redisVersion string, trials []trial) string {
	p := chart{
		title: "How long to sleep between two tries for a lock",
		about: fmt.Sprintf("%d requests, %d at a time; each holds the one %s lock for a GET, %v, and a SET; medians of %d rounds",
			experimentRequests, experimentWorkers, c.lock, c.hold, c.rounds),
		foot: fmt.Sprintf("%d CPUs for the requests and Redis together; %s, Redis %s. Who had waited for %v gave up.",
			runtime.NumCPU(), runtime.Version(), redisVersion, patience),
		panels: []panel{
			{name: "Load on Redis", unit: "calls / request (log)", log: true},
			{name: "Release", unit: "ms, median (log)", log: true},
			{name: "Throughput", unit: "requests / s"},
			{name: "Unlucky waiter", unit: "s to take, 99th percentile"},
		},
	}
	figure := []func(figures) float64{
		func(f figures) float64 { return f.roundTrips },
		func(f figures) float64 { return f.release },
		func(f figures) float64 { return f.perSecond },
		func(f figures) float64 { return f.takeP99 / 1000 },
	}
	for i, t := range trials {
		r := row{name: t.way.name, ours: t.way.pause == nil}
		switch {
		case i == 0:
			r.group = "each request waits for itself; it sleeps"
		case r.ours && !p.rows[i-1].ours:
			r.group = "a queue in each process; its head sleeps 1–16 ms, jittered"
		}
		if gaveUp := t.median(func(f figures) float64 { return f.gaveUp }); gaveUp > 0 {
			r.note = fmt.Sprintf("%.0f of %d gave up", gaveUp, experimentRequests)
		}
		p.rows = append(p.rows, r)
		for j, of := range figure {
			p.panels[j].values = append(p.panels[j].values, t.median(of))
		}
	}
	return p.draw()
}

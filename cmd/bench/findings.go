package main

import (
	"fmt"
	"runtime"
	"slices"
	"strings"

	"github.com/a2139e8d/latchkey/cmd/bench/chart"
)

// findings returns what the experiment has shown, as Markdown.
func findings(c config, redisVersion string, trials []trial) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s/%s, %d CPUs, %s, Redis %s; %d rounds, medians.\n\n",
		runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), runtime.Version(), redisVersion, c.rounds)
	fmt.Fprintf(&b, "%d requests, %d at a time, all of which need one %s lock. Each takes %v to arrive. "+
		"Under the lock it GETs a counter, waits %v, and SETs the counter. Who waits for %v gives up. "+
		"All of them, and Redis, share the machine.\n\n",
		experimentRequests, experimentWorkers, c.lock, arrival, c.hold, patience)
	b.WriteString("| sleep | ms to take: median | 99 % | hold | release: median | 99 % | Redis: round trips per request | CPU ms per request | requests/s | gave up |\n")
	b.WriteString("|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|\n")
	for _, t := range trials {
		perSecond := t.all(func(f figures) float64 { return f.perSecond })
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %s | %s | %s | %.0f (%.0f–%.0f) | %.0f |\n", t.way.name,
			chart.Short(t.median(func(f figures) float64 { return f.take })),
			chart.Short(t.median(func(f figures) float64 { return f.takeP99 })),
			chart.Short(t.median(func(f figures) float64 { return f.hold })),
			chart.Short(t.median(func(f figures) float64 { return f.release })),
			chart.Short(t.median(func(f figures) float64 { return f.releaseP99 })),
			chart.Short(t.median(func(f figures) float64 { return f.roundTrips })),
			chart.Short(t.median(func(f figures) float64 { return f.redisCPU })),
			median(perSecond), slices.Min(perSecond), slices.Max(perSecond),
			t.median(func(f figures) float64 { return f.gaveUp }))
	}
	b.WriteString("\n" + queues(c.lock) + " " +
		"In all other rows each request is alone, as in a process of its own. " +
		"Where the median is next to nothing, those that arrive take the lock while the others sleep. " +
		"Who gave up counts as one who took that long to take. " +
		"What it cost Redis counts, too, for each request that was served.\n")
	return b.String()
}

// queues tells how the defaults of a lock wait.
func queues(lock string) string {
	if lock == "spin" {
		return "The defaults queue in each process, and the processes queue in Redis, which tells the next one of its turn."
	}
	return "The defaults queue in each process, and the head of the queue sleeps 1–16 ms, jittered."
}

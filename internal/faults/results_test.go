package faults

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"time"
)

// writeResults writes the table to a file, for readers who do not run the suite.
func writeResults(path string, took time.Duration) error {
	table.Lock()
	defer table.Unlock()
	var b strings.Builder
	fmt.Fprintf(&b, "# Every promise under attack\n\nWritten by `make faults` on %s: %d faults in %v, on %d cores, `-seed %d`.\n"+
		"What a test does is said above it; what is promised after every fault, in main_test.go.\n"+
		"A request that is answered with a 503, or not at all, may or may not have been done; these are the \"requests without\".\n\n",
		time.Now().Format(time.DateOnly), len(table.rows), took.Round(time.Second), runtime.NumCPU(), seed)
	fmt.Fprint(&b, "| fault | promised | seen | recovered in | |\n|---|---|---|---|---|\n")
	for _, r := range table.rows {
		verdict, recovered := r.verdict()
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s |\n", r.fault, r.promise, strings.ReplaceAll(r.seen, "|", "/"), recovered, verdict)
	}
	fmt.Fprint(&b, "\nThat the tests would notice is shown by `make defects SUITES=faults`: it runs them on Latchkeys that are broken on purpose.\n")
	return os.WriteFile(path, []byte(b.String()), 0o666)
}

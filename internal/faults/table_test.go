package faults

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"text/tabwriter"
	"time"
)

// A row of the table describes what a fault did.
type row struct {
	fault, promise, seen string
	recovered            time.Duration // 0: not measured
	broken               bool          // the promise
}

// verdict says in words whether the promise held, and how soon the system had recovered.
func (r row) verdict() (verdict, recovered string) {
	verdict, recovered = "held", "–"
	if r.broken {
		verdict = "BROKEN"
	}
	if r.recovered > 0 {
		recovered = r.recovered.Round(time.Millisecond).String()
	}
	return verdict, recovered
}

// table collects the rows of all tests.
var table struct {
	sync.Mutex
	rows []row
}

// enough is the least number of faults in a whole run, even without the clusters of six nodes.
const enough = 85

func note(r row) {
	table.Lock()
	defer table.Unlock()
	table.rows = append(table.rows, r)
}

// noted returns a row that is put into the table when the test has ended.
func noted(t *testing.T, fault, promise string) *row {
	r := &row{fault: fault, promise: promise}
	t.Cleanup(func() {
		r.broken = t.Failed()
		note(*r)
	})
	return r
}

// row puts a scene into the table when its test has ended.
func (s *scene) row(fault, promise string) {
	seen := s.seen
	if sum := s.summary(); sum.Answered+sum.Silent > 0 { // otherwise the scene had no visitors
		if seen != "" {
			seen += "; "
		}
		seen += fmt.Sprintf("%d responses, %d requests without response, longest %v", sum.Answered, sum.Silent, sum.Longest.Round(time.Millisecond))
	}
	note(row{fault: fault, promise: promise, seen: seen, recovered: s.recovered, broken: s.Failed()})
}

// printTable prints the table, and reports whether all promises held. A whole run must also have tried
// enough faults.
func printTable(w io.Writer, whole bool) (well bool) {
	table.Lock()
	defer table.Unlock()
	well = printRows(w) == 0
	if whole && len(table.rows) < enough {
		fmt.Fprintf(w, "%d faults are too few: some tests have not run\n", len(table.rows))
		well = false
	}
	return well
}

// printRows prints the rows, and returns how many promises were broken. With -short it leaves out the
// promises that held, so that failures are easy to see.
func printRows(w io.Writer) (broken int) {
	slices.SortFunc(table.rows, func(a, b row) int { return cmp.Compare(a.fault, b.fault) })
	out := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(out, "fault\tpromised\tseen\trecovered in\t")
	for _, r := range table.rows {
		verdict, recovered := r.verdict()
		if r.broken {
			broken++
		}
		if testing.Short() && verdict == "held" {
			continue
		}
		fmt.Fprintf(out, "%s\t%s\t%s\t%s\t%s\n", r.fault, r.promise, r.seen, recovered, verdict)
	}
	_ = out.Flush()
	fmt.Fprintf(w, "%d faults, %d broken promises\n", len(table.rows), broken)
	return broken
}

// writeResults writes the table to a file, for readers who do not run the suite.
func writeResults(path string, took time.Duration) error {
	table.Lock()
	defer table.Unlock()
	var b strings.Builder
	fmt.Fprintf(&b, "# Every promise under attack\n\nWritten by `make faults` on %s: %d faults in %v, on %d cores, `-seed %d`.\n"+
		"The comment of each test says what it does; main_test.go says what is promised after every fault.\n"+
		"A request with a 503, or without a response, may or may not have been done: the table counts these as \"without response\".\n\n",
		time.Now().Format(time.DateOnly), len(table.rows), took.Round(time.Second), runtime.NumCPU(), seed)
	fmt.Fprint(&b, "| fault | promised | seen | recovered in | |\n|---|---|---|---|---|\n")
	for _, r := range table.rows {
		verdict, recovered := r.verdict()
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s |\n", r.fault, r.promise, strings.ReplaceAll(r.seen, "|", "/"), recovered, verdict)
	}
	fmt.Fprint(&b, "\n`make defects SUITES=faults` shows that the tests would notice: it runs them on versions of Latchkey that are broken on purpose.\n")
	return os.WriteFile(path, []byte(b.String()), 0o666)
}

package faults

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"sync"
	"text/tabwriter"
	"time"
)

// A row of the table says what a fault did.
type row struct {
	fault, promise, seen string
	recovered            time.Duration // 0: not measured
	broken               bool
	undone               string // why it could not be tried
}

// table collects the rows of all tests.
var table struct {
	sync.Mutex
	rows  []row
	finds []find
}

// A find says that a defect was found, or not, and how long that took.
type find struct {
	defect
	took  time.Duration
	found bool
}

// enough is how many faults there must be in a whole run.
const enough = 35

func note(r row) {
	table.Lock()
	defer table.Unlock()
	table.rows = append(table.rows, r)
}

// row puts a scene into the table when its test has ended.
func (s *scene) row(fault, promise string) {
	sum := s.summary()
	seen := fmt.Sprintf("%d answers, %d requests without, longest %v", sum.Answered, sum.Silent, sum.Longest.Round(time.Millisecond))
	if s.seen != "" {
		seen = s.seen + "; " + seen
	}
	note(row{fault: fault, promise: promise, seen: seen, recovered: s.recovered, broken: s.Failed()})
}

func caught(d defect, took time.Duration, found bool) {
	table.Lock()
	defer table.Unlock()
	table.finds = append(table.finds, find{d, took, found})
}

// printTables prints all tables, and returns whether all is well.
func printTables(w io.Writer, whole bool) (well bool) {
	table.Lock()
	defer table.Unlock()
	well = printFinds(w) && printRows(w) == 0
	if whole && len(table.rows) < enough {
		fmt.Fprintf(w, "%d faults are too few: some tests have not run\n", len(table.rows))
		well = false
	}
	return well
}

func printFinds(w io.Writer) (well bool) {
	if len(table.finds) == 0 {
		return true
	}
	well = true
	out := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(out, "broken on purpose\tdefect\tfound by\tafter\t")
	for _, f := range table.finds {
		verdict := "found"
		if !f.found {
			verdict, well = "NOT FOUND", false
		}
		fmt.Fprintf(out, "%s\t%s\t%s\t%s\t%s\n", f.promise, f.what, f.test, f.took.Round(time.Second), verdict)
	}
	_ = out.Flush()
	fmt.Fprintln(w)
	return well
}

// printRows prints what the faults did, and returns how many promises were broken.
func printRows(w io.Writer) (broken int) {
	slices.SortFunc(table.rows, func(a, b row) int { return cmp.Compare(a.fault, b.fault) })
	out := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(out, "fault\tpromised\tseen\trecovered in\t")
	for _, r := range table.rows {
		verdict := "held"
		switch {
		case r.undone != "":
			verdict, r.seen = "NOT DONE", r.undone
		case r.broken:
			verdict = "BROKEN"
			broken++
		}
		recovered := "–"
		if r.recovered > 0 {
			recovered = r.recovered.Round(time.Millisecond).String()
		}
		fmt.Fprintf(out, "%s\t%s\t%s\t%s\t%s\n", r.fault, r.promise, r.seen, recovered, verdict)
	}
	_ = out.Flush()
	fmt.Fprintf(w, "%d faults, %d broken promises\n", len(table.rows), broken)
	return broken
}

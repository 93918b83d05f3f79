package main

import (
	"fmt"
	"strings"
	"time"
)

// quantiles are a spread in JSON.
type quantiles struct {
	Median  int64 `json:"median"`
	P90     int64 `json:"p90"`
	P99     int64 `json:"p99"`
	Largest int64 `json:"largest"`
}

func (s *spread) quantiles() quantiles {
	return quantiles{s.at(0.5), s.at(0.9), s.at(0.99), s.largest}
}

// report is what stats prints with --json.
type report struct {
	tally
	Bytes      quantiles `json:"record_bytes"`
	AllBytes   int64     `json:"record_bytes_total"`
	Memory     quantiles `json:"memory_bytes"`
	MemoryOf   int64     `json:"memory_sampled"` // sessions that were asked
	AllMemory  int64     `json:"memory_bytes_estimated"`
	Age        quantiles `json:"age_seconds"`
	Left       quantiles `json:"left_seconds"`
	Masters    []*tally  `json:"masters"`
	Away       []away    `json:"away"`        // masters that are not counted
	SlotsMoved bool      `json:"slots_moved"` // meanwhile, so keys may be missing, or counted twice
	Incomplete bool      `json:"stopped_at_limit"`
	Took       float64   `json:"took_seconds"`
}

func (s *survey) report() report {
	t := s.all
	return report{tally: t, Bytes: t.bytes.quantiles(), AllBytes: t.bytes.total,
		Memory: t.memory.quantiles(), MemoryOf: t.memory.n, AllMemory: t.allMemory(),
		Age: t.age.quantiles(), Left: t.left.quantiles(), Masters: s.nodes, Away: s.away, SlotsMoved: s.slotsMoved, Incomplete: s.full(&tally{}),
		Took: seconds(time.Since(s.begun))}
}

func (s *survey) print() error {
	r := s.report()
	if s.json {
		return s.printJSON(r)
	}
	rows := [][]string{{"MASTER", ">SESSIONS", ">OF USERS", ">USERS", ">HELD", ">ENDED", ">RENEWED", ">OTHER KEYS"}}
	row := func(name string, t *tally) {
		rows = append(rows, []string{name, grouped(t.Sessions), grouped(t.Owned), grouped(t.Users), grouped(t.Held), grouped(t.Ended), grouped(t.Renewed), grouped(t.Others)})
	}
	for _, t := range s.nodes {
		row(t.Address, t)
	}
	if len(s.nodes) > 1 {
		row(map[bool]string{true: "all", false: "all that replied"}[len(s.away) == 0], &s.all)
	}
	table(s.out, s.out.columns(), rows)
	printAway(s.out, s.away)
	if r.Sessions > 0 {
		fmt.Fprintln(s.out)
		s.printSpreads(r)
	} else if len(s.away) == 0 && r.Users+r.Ended+r.Renewed+r.Held+r.Unreadable+r.Others == 0 {
		fmt.Fprintf(s.out, "no key begins with %q; --prefix names another prefix, and the URL another database\n", s.prefix+"{")
	}
	them := "them"
	if r.Unreadable == 1 {
		them = "it"
	}
	for _, wrong := range []struct {
		n    int64
		what string
	}{
		{r.Unreadable, "cannot be read, since another program or version has written " + them + "; show ID says more: " + fewOf(r.UnreadableIDs, r.Unreadable)},
		{r.Endless, "without a timeout, since another program or an operator has removed it"},
	} {
		if wrong.n > 0 {
			fmt.Fprintf(s.out, "%s %s\n", plural(wrong.n, "record"), wrong.what)
		}
	}
	if r.Incomplete {
		fmt.Fprintf(s.out, "stopped at --limit %d: there may be more\n", s.limit)
	}
	return nil
}

// fewOf lists IDs, of which there are n in all.
func fewOf(ids []string, n int64) string {
	text := strings.Join(ids, ", ")
	if int64(len(ids)) < n {
		text += ", …"
	}
	return text
}

func (s *survey) printSpreads(r report) {
	rows := [][]string{{"OF A SESSION", ">MEDIAN", ">90 %", ">99 %", ">LARGEST", ">ALL"}}
	row := func(name string, q quantiles, write func(int64) string, all string) {
		rows = append(rows, []string{name, write(q.Median), write(q.P90), write(q.P99), write(q.Largest), all})
	}
	bytes := func(n int64) string { return size(float64(n)) }
	period := func(n int64) string { return roughly(time.Duration(n) * time.Second) }
	row("record", r.Bytes, bytes, bytes(r.AllBytes))
	if r.MemoryOf > 0 {
		row("memory, sampled", r.Memory, bytes, "about "+bytes(r.AllMemory))
	}
	row("age", r.Age, period, "")
	row("time left", r.Left, period, "")
	table(s.out, s.out.columns(), rows)
}

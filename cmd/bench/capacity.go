package main

import (
	"fmt"
	"math"

	"github.com/a2139e8d/latchkey/cmd/bench/app"
)

// capacity returns a section with the number of requests per second at which Redis, which executes commands
// on one core, has used up that core. From then on more processes of the application do not help. The section
// is empty if that was not measured.
func capacity(results []*result) string {
	var cells []*result
	head := []string{"requests per second (Redis's µs for each)"}
	for _, r := range results {
		if r.name == "spread" || r.name == "read" {
			cells = append(cells, r)
			head = append(head, r.cell.String())
		}
	}
	if len(cells) == 0 {
		return ""
	}
	rows := [][]string{head}
	for _, p := range app.Peers() {
		row := []string{p.Title}
		measured := false
		for _, r := range cells {
			text := "–"
			if o := r.find(p.Name); o != nil && len(o.samples) > 0 {
				text = fullAt(median(o.of(redisCPU)))
				measured = true
			}
			row = append(row, text)
		}
		if measured && p.Name != app.Floor {
			rows = append(rows, row)
		}
	}
	return "\n## When Redis is full\n\n" + markdown(rows)
}

func fullAt(micros float64) string {
	if micros <= 0 {
		return "–"
	}
	return fmt.Sprintf("%.0f (%s)", math.Round(1e4/micros)*100, number(micros))
}

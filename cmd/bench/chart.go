package main

import (
	"fmt"
	"html"
	"math"
	"runtime"
	"strings"

	"github.com/a2139e8d/latchkey/cmd/bench/app"
)

// All lengths are in pixels.
const (
	chartWidth  = 720
	margin      = 16
	namesWidth  = 160 // of the column with the peers' names
	panelGap    = 10
	labelWidth  = 34 // right of a panel's last tick
	topHeight   = 92 // above the first row
	rowHeight   = 30
	groupHeight = 26 // of a group's heading
	footHeight  = 58 // below the last row
)

// chartStyle uses the system's font, and is dark if the reader prefers dark pages. Texts have a rim in the
// colour of the page, so that they stay readable on top of a line.
const chartStyle = `
text{font-family:system-ui,-apple-system,"Segoe UI",Roboto,"DejaVu Sans",sans-serif;font-size:12px;fill:#24292f;stroke:#ffffff;stroke-width:3px;stroke-linejoin:round;paint-order:stroke}
.title{font-size:15px;font-weight:600}
.head{font-weight:600}
.small{font-size:10.5px;fill:#57606a}
.grid{stroke:#d8dee4}
.plain{fill:#8c959f;stroke:#8c959f}
.ours{fill:#0969da;stroke:#0969da}
.page{fill:#ffffff}
@media (prefers-color-scheme:dark){
text{fill:#e6edf3;stroke:#0d1117}
.small{fill:#9198a1}
.grid{stroke:#3d444d}
.plain{fill:#7d8590;stroke:#7d8590}
.ours{fill:#4493f8;stroke:#4493f8}
.page{fill:#0d1117}
}
`

// svg is a picture being drawn.
type svg struct{ strings.Builder }

func (s *svg) text(x, y float64, class, anchor, text string) {
	fmt.Fprintf(s, "<text x=\"%.1f\" y=\"%.1f\" class=\"%s\" text-anchor=\"%s\">%s</text>\n", x, y, class, anchor, html.EscapeString(text))
}

func (s *svg) line(x1, y1, x2, y2 float64, class string) {
	fmt.Fprintf(s, "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" class=\"%s\"/>\n", x1, y1, x2, y2, class)
}

// chart draws how long a crowd took, as SVG: a row for each peer, and a panel for each number of processes.
// ok is false if that was not measured.
func chart(c config, redisVersion string, results []*result) (picture string, ok bool) {
	var cells []*result
	low, high := math.Inf(1), 1.0 // decades of the scale, which is logarithmic
	for _, r := range results {
		if r.name != "hot" {
			continue
		}
		cells = append(cells, r)
		for _, o := range r.peers {
			if len(o.samples) > 0 {
				decade := math.Log10(median(o.of(roundTime)))
				low, high = min(low, math.Floor(decade)), max(high, math.Ceil(decade))
			}
		}
	}
	if math.IsInf(low, 1) {
		return "", false
	}
	title := fmt.Sprintf("%d concurrent writes to one session", hotSize)
	s := new(svg)
	s.text(margin, 27, "title", "start", title)
	s.text(margin, 45, "small", "start", "milliseconds until all of them are answered; logarithmic")
	middles, bottom := s.names(cells[0])
	width := (chartWidth - 2*margin - namesWidth - panelGap*float64(len(cells)-1)) / float64(len(cells))
	for i, r := range cells {
		x := margin + namesWidth + float64(i)*(width+panelGap)
		s.panel(r, x, (width-labelWidth)/(high-low), low, high, middles)
	}
	s.text(margin, bottom+footHeight-margin, "small", "start",
		fmt.Sprintf("Medians of up to %d rounds; %d CPUs for clients, application and Redis together; %s, Redis %s.",
			c.rounds, runtime.NumCPU(), runtime.Version(), redisVersion))
	return fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" width="%[1]d" height="%[2]g" viewBox="0 0 %[1]d %[2]g" role="img">
<title>%[3]s</title>
<style>%[4]s</style>
<rect width="%[1]d" height="%[2]g" class="page"/>
%[5]s</svg>
`, chartWidth, bottom+footHeight, html.EscapeString(title), chartStyle, s.String()), true
}

// names writes the names of the peers, and returns the middle of each row and the
// end of the last one.
func (s *svg) names(r *result) (middles []float64, y float64) {
	y = topHeight
	group := ""
	for _, o := range r.peers {
		g, class := "without a lock", ""
		switch {
		case o.peer.Name == app.Latchkey:
			g, class = "", "head"
		case o.peer.Locks:
			g = "scs with a lock around each request"
		case o.peer.Name == app.Floor:
			g = "the handler alone"
		}
		if g != group {
			group = g
			y += groupHeight
			s.text(margin, y-9, "small", "start", g)
		}
		middle := y + rowHeight/2
		if share, ok := o.kept(); ok && share < 1 {
			s.text(margin+8, middle-2, class, "start", o.peer.Title)
			s.text(margin+8, middle+10, "small", "start", fmt.Sprintf("keeps %.0f %%", 100*share))
		} else {
			s.text(margin+8, middle+4, class, "start", o.peer.Title)
		}
		middles = append(middles, middle)
		y += rowHeight
	}
	return middles, y
}

// panel draws a dot for each peer: the length of a bar would mean nothing on a logarithmic scale.
func (s *svg) panel(r *result, x, decade, low, high float64, middles []float64) {
	_, processes, _ := strings.Cut(r.cell.String(), ", ")
	s.text(x, topHeight-22, "head", "start", processes)
	s.text(x, topHeight-8, "small", "start", "ms")
	for tick := low; tick <= high; tick++ {
		at := x + (tick-low)*decade
		for _, middle := range middles {
			s.line(at, middle-rowHeight/2, at, middle+rowHeight/2, "grid")
		}
		label := fmt.Sprintf("%g", math.Pow10(int(tick)))
		if tick >= 3 {
			label = fmt.Sprintf("%gk", math.Pow10(int(tick)-3)) // ticks are close together
		}
		s.text(at, middles[len(middles)-1]+rowHeight/2+14, "small", "middle", label)
	}
	for i, o := range r.peers {
		if len(o.samples) == 0 {
			s.text(x+8, middles[i]+4, "small", "start", "–")
			continue
		}
		class := "plain"
		if o.peer.Name == app.Latchkey {
			class = "ours"
		}
		took := median(o.of(roundTime))
		end := x + (math.Log10(took)-low)*decade
		s.line(x, middles[i], end, middles[i], class)
		fmt.Fprintf(s, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"4.5\" class=\"%s\"/>\n", end, middles[i], class)
		digits := "%.0f"
		if took < 9.95 {
			digits = "%.1f"
		}
		s.text(end+8, middles[i]+4, "", "start", fmt.Sprintf(digits, took))
	}
}

// Package chart draws tables of figures as SVG.
//
//   - chart.go: what is where.
//   - scale.go: the axes.
//   - svg.go: the shapes.
package chart

import "math"

// A Chart compares some things by several figures: a row for each thing, and a
// panel for each figure, side by side.
type Chart struct {
	Title, About string
	Foot         string
	Rows         []Row
	Panels       []Panel
	Same         bool // all panels have the same scale
}

// A Row is one of the things.
type Row struct {
	Group string // begins with this row, unless it is ""
	Name  string
	Note  string // in small print below the name
	Ours  bool   // to be told from the others at a glance
}

// A Panel is one figure of all rows. A bar on a logarithmic scale would have a
// length that means nothing, so that has dots.
type Panel struct {
	Name, Unit string
	Log        bool
	Values     []float64 // one a row; NaN: not known; may be infinite
}

// All lengths are in pixels.
const (
	chartWidth  = 720
	margin      = 16
	namesWidth  = 160 // of the column with the rows' names
	panelGap    = 10
	labelWidth  = 34 // right of a full bar, for its figure
	rowHeight   = 30
	groupHeight = 26 // of a group's heading
	barHeight   = 12
	topHeight   = 92 // above the first row
	axisHeight  = 26 // below the last row
	footHeight  = 16
)

// Draw returns the chart as SVG.
func (c Chart) Draw() string {
	y := float64(topHeight)
	var middles []float64 // of the rows
	d := &drawing{width: chartWidth}
	for _, r := range c.Rows {
		if r.Group != "" {
			y += groupHeight
			d.text(margin, y-9, "small", "start", r.Group)
		}
		middles = append(middles, y+rowHeight/2)
		r.draw(d, y+rowHeight/2)
		y += rowHeight
	}
	d.text(margin, 27, "title", "start", c.Title)
	d.text(margin, 45, "small", "start", c.About)
	width := (chartWidth - 2*margin - namesWidth - panelGap*float64(len(c.Panels)-1)) / float64(len(c.Panels))
	for i, p := range c.Panels {
		s := scaleOf(p.Values, p.Log)
		if c.Same {
			s = scaleOf(c.values(), p.Log)
		}
		x := margin + namesWidth + float64(i)*(width+panelGap)
		p.draw(d, s, x, width-labelWidth, middles, c.Rows)
	}
	y += axisHeight + footHeight
	d.text(margin, y, "small", "start", c.Foot)
	d.height = y + margin
	return d.svg(c.Title)
}

// values returns those of all panels.
func (c Chart) values() []float64 {
	var all []float64
	for _, p := range c.Panels {
		all = append(all, p.Values...)
	}
	return all
}

func (r Row) draw(d *drawing, middle float64) {
	class := ""
	if r.Ours {
		class = "head"
	}
	if r.Note == "" {
		d.text(margin+8, middle+4, class, "start", r.Name)
		return
	}
	d.text(margin+8, middle-2, class, "start", r.Name)
	d.text(margin+8, middle+10, "small", "start", r.Note)
}

// draw draws the panel from x on, with bars of at most the given width.
func (p Panel) draw(d *drawing, s scale, x, width float64, middles []float64, rows []Row) {
	d.text(x, topHeight-22, "head", "start", p.Name)
	d.text(x, topHeight-8, "small", "start", p.Unit)
	bottom := middles[len(middles)-1] + rowHeight/2
	for _, tick := range s.ticks() {
		at := x + s.at(tick)*width
		for _, middle := range middles { // not through the groups' headings
			d.line(at, middle-rowHeight/2, at, middle+rowHeight/2, "grid")
		}
		d.text(at, bottom+14, "small", "middle", plain(tick))
	}
	for i, v := range p.Values {
		class := "plain"
		if rows[i].Ours {
			class = "ours"
		}
		p.mark(d, x, x+s.at(v)*width, middles[i], v, class)
	}
}

// mark draws one value, which is at end.
func (p Panel) mark(d *drawing, x, end, middle, v float64, class string) {
	switch {
	case math.IsNaN(v):
		d.text(x+8, middle+4, "small", "start", "–")
		return
	case math.IsInf(v, 1):
		d.text(x+8, middle+4, "", "start", "∞")
		return
	case p.Log:
		d.line(x, middle, end, middle, class)
		d.dot(end, middle, 4.5, class)
	default:
		d.bar(x, middle-barHeight/2, end-x, barHeight, class)
	}
	d.text(end+8, middle+4, "", "start", Short(v))
}

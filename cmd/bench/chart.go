package main

// A chart compares some things by several figures: a row for each thing, and a
// panel for each figure, side by side.
type chart struct {
	title, about string
	foot         string
	rows         []row
	panels       []panel
}

// A row is one of the things.
type row struct {
	group string // begins with this row, unless it is ""
	name  string
	note  string // in small print below the name
	ours  bool   // to be told from the others at a glance
}

// A panel is one figure of all rows. A bar on a logarithmic scale would have a
// length that means nothing, so that has dots.
type panel struct {
	name, unit string
	log        bool
	values     []float64 // one a row
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

// draw returns the chart as SVG.
func (c chart) draw() string {
	y := float64(topHeight)
	var middles []float64 // of the rows
	d := &drawing{width: chartWidth}
	for _, r := range c.rows {
		if r.group != "" {
			y += groupHeight
			d.text(margin, y-9, "small", "start", r.group)
		}
		middles = append(middles, y+rowHeight/2)
		r.draw(d, y+rowHeight/2)
		y += rowHeight
	}
	d.text(margin, 27, "title", "start", c.title)
	d.text(margin, 45, "small", "start", c.about)
	width := (chartWidth - 2*margin - namesWidth - panelGap*float64(len(c.panels)-1)) / float64(len(c.panels))
	for i, p := range c.panels {
		x := margin + namesWidth + float64(i)*(width+panelGap)
		p.draw(d, x, width-labelWidth, middles, c.rows)
	}
	y += axisHeight + footHeight
	d.text(margin, y, "small", "start", c.foot)
	d.height = y + margin
	return d.svg(c.title)
}

func (r row) draw(d *drawing, middle float64) {
	class := ""
	if r.ours {
		class = "head"
	}
	if r.note == "" {
		d.text(margin+8, middle+4, class, "start", r.name)
		return
	}
	d.text(margin+8, middle-2, class, "start", r.name)
	d.text(margin+8, middle+10, "small", "start", r.note)
}

// draw draws the panel from x on, with bars of at most the given width.
func (p panel) draw(d *drawing, x, width float64, middles []float64, rows []row) {
	d.text(x, topHeight-22, "head", "start", p.name)
	d.text(x, topHeight-8, "small", "start", p.unit)
	s := scaleOf(p.values, p.log)
	bottom := middles[len(middles)-1] + rowHeight/2
	for _, tick := range s.ticks() {
		at := x + s.at(tick)*width
		for _, middle := range middles { // not through the groups' headings
			d.line(at, middle-rowHeight/2, at, middle+rowHeight/2, "grid")
		}
		d.text(at, bottom+14, "small", "middle", plain(tick))
	}
	for i, v := range p.values {
		class := "plain"
		if rows[i].ours {
			class = "ours"
		}
		end := x + s.at(v)*width
		if p.log {
			d.line(x, middles[i], end, middles[i], class)
			d.dot(end, middles[i], 4.5, class)
		} else {
			d.bar(x, middles[i]-barHeight/2, end-x, barHeight, class)
		}
		d.text(end+8, middles[i]+4, "", "start", short(v))
	}
}

package chart

import (
	"fmt"
	"html"
	"strings"
)

// A drawing is an SVG picture under way. It needs no font of its own, and is
// dark where the reader's other pages are.
type drawing struct {
	body          strings.Builder
	width, height float64
}

// The classes that shapes and texts may have. Texts have a rim in the colour of
// the page, so that a line behind them does not make them hard to read.
const style = `
text{font-family:system-ui,-apple-system,"Segoe UI",Roboto,"DejaVu Sans",sans-serif;font-size:12px;fill:#24292f;stroke:#ffffff;stroke-width:3px;stroke-linejoin:round;paint-order:stroke}
.title{font-size:15px;font-weight:600}
.head{font-weight:600}
.small{font-size:10.5px;fill:#57606a}
.grid{stroke:#d8dee4;stroke-width:1}
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

// text writes s; anchor is start, middle or end, and says what x is of it.
func (d *drawing) text(x, y float64, class, anchor, s string) {
	fmt.Fprintf(&d.body, "<text x=\"%.1f\" y=\"%.1f\" class=\"%s\" text-anchor=\"%s\">%s</text>\n", x, y, class, anchor, html.EscapeString(s))
}

func (d *drawing) line(x1, y1, x2, y2 float64, class string) {
	fmt.Fprintf(&d.body, "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" class=\"%s\"/>\n", x1, y1, x2, y2, class)
}

func (d *drawing) bar(x, y, width, height float64, class string) {
	fmt.Fprintf(&d.body, "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" stroke=\"none\" class=\"%s\"/>\n", x, y, width, height, class)
}

func (d *drawing) dot(x, y, radius float64, class string) {
	fmt.Fprintf(&d.body, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"%.1f\" class=\"%s\"/>\n", x, y, radius, class)
}

// svg returns the whole file. title is for those who hear it.
func (d *drawing) svg(title string) string {
	return fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" width="%[1]g" height="%[2]g" viewBox="0 0 %[1]g %[2]g" role="img">
<title>%[3]s</title>
<style>%[4]s</style>
<rect width="%[1]g" height="%[2]g" class="page"/>
%[5]s</svg>
`, d.width, d.height, html.EscapeString(title), style, d.body.String())
}

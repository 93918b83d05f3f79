package main

import (
	"strings"
	"testing"
)

// A column is as wide as its widest cell on a terminal, also if characters take two columns, or none. A text that is cut
// is never wider than it may be.
func TestWidthsOfATable(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	table(&b, 60, [][]string{{"USER", ">SESSIONS"}, {"ann", "1"}, {"日本語", "2"}, {"e\u0301ve", "3"}, {strings.Repeat("日本", 30), "4"}})
	for line := range strings.Lines(b.String()) {
		if line = strings.TrimSuffix(line, "\n"); widthOf(line) > 60 || widthOf(line) < 58 {
			t.Errorf("%q is %d wide", line, widthOf(line))
		}
	}
	for n := range 12 {
		for _, got := range []string{firstColumns("a日e\u0301本b", n), lastColumns("a日e\u0301本b", n)} {
			if widthOf(got) > n {
				t.Errorf("%q is %d wide, and may be %d", got, widthOf(got), n)
			}
		}
	}
	for _, mark := range []string{"\u0903", "\u302e", "\u0e33"} { // they belong to the character before them, also to a blank
		for _, width := range []int{5, 40, 80} {
			line := "hello world " + strings.Repeat(mark, 200) + " foo bar"
			if got := strings.Join(strings.Fields(strings.Join(continued(line, width), " ")), " "); got != line {
				t.Errorf("%q became %q", line, got)
			}
		}
	}
	if got := continued("日本語 日本語 e\u0301e\u0301", 14); got[0] != "日本語 日本語" {
		t.Errorf("%q", got)
	}
}

package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode"
)

const (
	// widestCell is how long a cell may be. What a visitor has named, such as a device, cannot make all lines longer.
	widestCell = 80
	// narrowestCell is how long a cell may be on a terminal that is too narrow for the table. A session's ID fits.
	narrowestCell = 28
	// columnGap is between two columns.
	columnGap = 2
)

// table writes rows of cells below each other. A column whose title begins with > is aligned to the right. If the table
// is wider than the terminal, titles of two words take two lines, and long cells are shortened, so that it fits, or as
// far as they can be. Without a terminal width is 0.
func table(w io.Writer, width int, rows [][]string) {
	if len(rows) == 0 {
		return
	}
	right := make([]bool, len(rows[0]))
	for i, title := range rows[0] {
		rows[0][i], right[i] = strings.CutPrefix(title, ">")
	}
	for _, row := range rows {
		for i := range row {
			row[i] = cell(row[i])
		}
	}
	longest, most := longestCells(rows), widestCell
	if width > 0 && lineWidth(longest, most) > width {
		two := slices.Concat(inTwoLines(rows[0]), rows[1:])
		if lineWidth(longestCells(two), narrowestCell) <= width {
			rows, longest = two, longestCells(two)
		} else { // lines are continued, of which each has room for one cell
			most = min(most, max(narrowestCell, width-len("    ")))
		}
		for lineWidth(longest, narrowestCell) <= width && lineWidth(longest, most) > width {
			most--
		}
	}
	for _, row := range rows {
		fmt.Fprintln(w, tableLine(row, longest, right, most))
	}
}

func tableLine(row []string, longest []int, right []bool, most int) string {
	line := ""
	for i, cell := range row {
		cell = shortened(cell, most)
		gap := strings.Repeat(" ", min(longest[i], most)-widthOf(cell))
		if right[i] {
			cell = gap + cell
		} else {
			cell += gap
		}
		line += cell + strings.Repeat(" ", columnGap)
	}
	return strings.TrimRight(line, " ")
}

// longestCells returns the width of the widest cell of each column.
func longestCells(rows [][]string) []int {
	longest := make([]int, len(rows[0]))
	for _, row := range rows {
		for i, cell := range row {
			longest[i] = max(longest[i], widthOf(cell))
		}
	}
	return longest
}

// lineWidth returns the width of a table in which no cell is longer than most.
func lineWidth(longest []int, most int) int {
	width := columnGap * (len(longest) - 1)
	for _, n := range longest {
		width += min(n, most)
	}
	return width
}

// inTwoLines breaks titles before their last word, if any has several.
func inTwoLines(titles []string) [][]string {
	if !strings.Contains(strings.Join(titles, ""), " ") {
		return [][]string{titles}
	}
	above, below := make([]string, len(titles)), make([]string, len(titles))
	for i, title := range titles {
		end := strings.LastIndex(title, " ")
		above[i], below[i] = title[:max(0, end)], title[end+1:]
	}
	return [][]string{above, below}
}

// cell makes s a cell of a table. What a visitor has named cannot look like several cells: it is in quotes if it has
// several spaces, or characters that look like some.
func cell(s string) string {
	s = printable(s)
	if strings.Contains(s, "  ") || strings.TrimSpace(s) != s || strings.ContainsFunc(s, looksLikeSpace) {
		return `"` + s + `"`
	}
	return s
}

// looksLikeSpace also finds the blank of Braille and the fillers of Hangul, which count as printable.
func looksLikeSpace(r rune) bool {
	return r != ' ' && unicode.IsSpace(r) || strings.ContainsRune("\u2800\u3164\u115f\u1160\uffa0", r)
}

// shortened leaves out the middle of a text that is too long: a process differs from others at its end, too.
func shortened(s string, most int) string {
	if widthOf(s) <= most {
		return s
	}
	return firstColumns(s, most/2) + "…" + lastColumns(s, (most-1)/2)
}

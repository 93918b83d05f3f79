package main

import (
	"io"
	"os"
	"regexp"
	"strings"

	"golang.org/x/term"
)

// isTerminal reports whether w is a terminal.
func isTerminal(w any) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// columns returns the width of stdout, or 0 if it is no terminal.
func (s streams) columns() int {
	if !isTerminal(s.stdout) {
		return 0
	}
	width, _ := sizeOf(s.stdout.(*os.File))
	return width
}

// sizeOf returns the size of a terminal. Some do not know it.
func sizeOf(terminal *os.File) (width, height int) {
	width, height, err := term.GetSize(int(terminal.Fd()))
	if err != nil || width <= 0 || height <= 0 {
		return 80, 24
	}
	return width, height
}

// continueLines makes a terminal show each line for people in parts that fit. Nothing has been written yet.
func (s streams) continueLines(json bool) {
	if width := s.columns(); width > 0 && !json {
		s.Reset(&narrow{w: s.stdout, width: width})
	}
}

// A narrow writes whole lines to a terminal, in parts that fit.
type narrow struct {
	w     io.Writer
	width int
	begun string // a line whose end was not written yet
}

func (n *narrow) Write(b []byte) (int, error) {
	text := n.begun + string(b)
	end := strings.LastIndexByte(text, '\n') + 1
	n.begun = text[end:]
	var out strings.Builder
	for line := range strings.Lines(text[:end]) {
		for _, part := range folded(strings.TrimSuffix(line, "\n"), n.width) {
			out.WriteString(part + "\n")
		}
	}
	_, err := io.WriteString(n.w, out.String())
	return len(b), err
}

// painting is a coloured word, and how it looks without its colour.
var painting = regexp.MustCompile(`^\x1b\[[0-9;]*m(.*?)\x1b\[0m`)

// folded returns a line in parts that fit. A line that is indented is a command or a value, and left whole, so that it
// can be copied.
func folded(line string, width int) []string {
	if strings.HasPrefix(line, " ") {
		return []string{line}
	}
	word := painting.FindStringSubmatch(line)
	if word == nil {
		return continued(line, width)
	}
	parts := continued(word[1]+line[len(word[0]):], width)
	parts[0] = word[0] + strings.TrimPrefix(parts[0], word[1])
	return parts
}

// continued returns a line in parts that fit, of which all but the first are indented. It is broken between two columns
// of a table if these are in its second half, or else between two words. A word that is too long is left whole.
func continued(line string, width int) (parts []string) {
	const indent = "    "
	for begin := 0; ; begin = len(indent) {
		if widthOf(line) <= width || width <= begin {
			return append(parts, line)
		}
		fits := firstColumns(line, width+1)
		end := strings.LastIndex(fits, "  ")
		if end <= max(begin, len(fits)/2) {
			end = strings.LastIndex(fits, " ")
		}
		if end <= begin { // a word is too long
			from := max(begin, len(fits)) // a wide character may belong to the last blank of the indent
			after := strings.IndexByte(line[from:], ' ')
			if after < 0 {
				return append(parts, line)
			}
			end = from + after
		}
		parts = append(parts, strings.TrimRight(line[:end], " "))
		line = indent + strings.TrimLeft(line[end:], " ")
	}
}

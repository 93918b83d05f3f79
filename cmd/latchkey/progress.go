package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"
)

// A progress bar is only shown if stderr is a terminal.
type progress struct {
	w     io.Writer // nil: not shown
	total int64
	begun time.Time
	drawn time.Time
}

// newProgress returns a bar for a total number of keys.
func newProgress(w io.Writer, total int64) *progress {
	if !isTerminal(w) {
		w = nil
	}
	return &progress{w: w, total: total, begun: time.Now()}
}

// set shows how many keys were looked at, at most ten times a second.
func (p *progress) set(seen int64) {
	if p.w == nil || time.Since(p.drawn) < 100*time.Millisecond {
		return
	}
	p.drawn = time.Now()
	width, _ := sizeOf(p.w.(*os.File))
	fmt.Fprintf(p.w, "\r%s", firstColumns(bar(seen, p.total, time.Since(p.begun)), width-1)) // a second line would stay
}

// end deletes the bar.
func (p *progress) end() {
	if p.w != nil {
		fmt.Fprint(p.w, "\r\x1b[K")
	}
}

// bar fits on a line of 80 columns.
func bar(seen, total int64, took time.Duration) string {
	const width = 25
	seen = min(seen, total)
	part := 1.0
	if total > 0 {
		part = float64(seen) / float64(total)
	}
	done := int(part * width)
	return fmt.Sprintf("[%s%s] %3.0f %%  %s of %s keys  %s ", strings.Repeat("#", done), strings.Repeat("-", width-done),
		100*part, grouped(seen), grouped(total), roughly(took.Round(time.Second)))
}

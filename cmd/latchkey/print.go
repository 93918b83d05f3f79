package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"
	"unicode/utf16"
)

// printJSON writes v as one line.
func (j *job) printJSON(v any) error {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return err
	}
	_, err := j.out.WriteString(escapedJSON(b.String()))
	return err
}

// escapedJSON makes a line of JSON safe for a terminal, as printable does with other text. It decodes to the
// same values: except at the line's end, such characters are in strings only.
func escapedJSON(line string) string {
	if !strings.ContainsFunc(strings.TrimSuffix(line, "\n"), isControl) { // nearly always
		return line
	}
	var b strings.Builder
	for _, r := range line {
		switch {
		case r == '\n' || !isControl(r):
			b.WriteRune(r)
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			fmt.Fprintf(&b, `\u%04x\u%04x`, high, low)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.String()
}

// pairs writes one name and value per line.
func pairs(w io.Writer, lines ...[2]string) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, line := range lines {
		fmt.Fprintf(t, "%s\t%s\n", printable(line[0]), printable(line[1]))
	}
	_ = t.Flush() // w keeps its error
}

// printable makes s safe for a line of a terminal, which obeys control characters.
func printable(s string) string {
	if !strings.ContainsFunc(s, isControl) {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		if isControl(r) {
			quoted := strconv.QuoteRuneToASCII(r)
			b.WriteString(quoted[1 : len(quoted)-1])
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

func isControl(r rune) bool { return !unicode.IsPrint(r) || r == unicode.ReplacementChar }

// roughly writes a duration with at most two units, as in 3d4h and 1m30s.
func roughly(d time.Duration) string {
	const day = 24 * time.Hour
	switch {
	case d < 0:
		return "0s"
	case d < 10*time.Second:
		return d.Round(100 * time.Millisecond).String()
	case d.Round(time.Second) < time.Hour:
		s := d.Round(time.Second).String()
		if strings.HasSuffix(s, "m0s") {
			s = strings.TrimSuffix(s, "0s")
		}
		return s
	case d.Round(time.Minute) < day:
		d = d.Round(time.Minute)
		return fmt.Sprintf("%dh%dm", d/time.Hour, d%time.Hour/time.Minute)
	}
	d = d.Round(time.Hour)
	return fmt.Sprintf("%dd%dh", d/day, d%day/time.Hour)
}

// ago and in say when something was or will be, or - for the zero time.
func ago(t time.Time, now time.Time) string { return relative(t, now.Sub(t), "%s ago") }
func in(t time.Time, now time.Time) string  { return relative(t, t.Sub(now), "in %s") }

func relative(t time.Time, d time.Duration, form string) string {
	if t.IsZero() {
		return "-"
	}
	return fmt.Sprintf(form, roughly(d))
}

// moment writes a time for people.
func moment(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05 UTC") }

// seconds returns a duration for JSON.
func seconds(d time.Duration) float64 { return math.Round(d.Seconds()*1000) / 1000 }

// grouped writes 1234567 as 1,234,567.
func grouped(n int64) string {
	s := strconv.FormatInt(n, 10)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// size writes a number of bytes with a unit.
func size(n float64) string {
	const step = 1000
	for _, unit := range []string{"B", "KB", "MB", "GB"} {
		switch {
		case n >= step:
			n /= step
		case unit == "B" || n >= 99.95:
			return fmt.Sprintf("%.0f %s", n, unit)
		default:
			return fmt.Sprintf("%.1f %s", n, unit)
		}
	}
	return fmt.Sprintf("%.1f TB", n)
}

// plural writes 1 lock, 2 locks.
func plural(n int64, word string) string {
	if n != 1 {
		word += "s"
	}
	return grouped(n) + " " + word
}

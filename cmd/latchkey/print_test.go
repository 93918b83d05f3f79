package main

import (
	"strings"
	"testing"
	"time"
)

// Durations, sizes and counts are as exact as people need them.
func TestNumbersAreShort(t *testing.T) {
	t.Parallel()
	is := map[string]string{}
	for d, want := range map[time.Duration]string{
		-time.Second: "0s", 1234 * time.Millisecond: "1.2s", 59*time.Second + 700*time.Millisecond: "1m",
		90 * time.Second: "1m30s", 59*time.Minute + 59*time.Second + 900*time.Millisecond: "1h0m",
		3*time.Hour + 29*time.Minute + 40*time.Second: "3h30m", 24*time.Hour - time.Second: "1d0h", 10*time.Minute + 10*time.Second: "10m10s",
	} {
		is[want] = roughly(d)
	}
	for n, want := range map[float64]string{0: "0 B", 1000: "1.0 KB", 99_940: "99.9 KB", 99_960: "100 KB", 309e6: "309 MB", 4e13: "40.0 TB"} {
		is[want] = size(n)
	}
	for n, want := range map[int64]string{0: "0", 999: "999", 1000: "1,000", 1234567: "1,234,567"} {
		is[want] = grouped(n)
	}
	for want, got := range is {
		if got != want {
			t.Errorf("it is %q, want %q", got, want)
		}
	}
}

// What Redis holds may have been written by anybody. It cannot command the terminal.
func TestPrintable(t *testing.T) {
	t.Parallel()
	for s, want := range map[string]string{
		"POST /order": "POST /order", "Zürich, 東京": "Zürich, 東京", "\x1b[2J": `\x1b[2J`, "a\nb": `a\nb`, "\u009b2J": `\u009b2J`,
		"\u202egnp": `\u202egnp`, "\xff": `\ufffd`,
	} {
		if got := printable(s); got != want {
			t.Errorf("%q is printed as %q, want %q", s, got, want)
		}
	}
	var b strings.Builder
	table(&b, [][]string{{"A", ">N"}, {"Zürich\x07", "1"}, {"東", "1,000"}})
	if want := "A             N\nZürich\\a      1\n東         1,000\n"; b.String() != want {
		t.Errorf("%q, want %q", b.String(), want)
	}
}

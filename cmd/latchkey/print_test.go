package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"
	"unicode"
)

// Durations, sizes and counts are as exact as people need them.
func TestNumbersAreShort(t *testing.T) {
	t.Parallel()
	for want, got := range map[string]string{
		"0s": roughly(-time.Second), "1.2s": roughly(1234 * time.Millisecond), "1m": roughly(59*time.Second + 700*time.Millisecond),
		"1m30s": roughly(90 * time.Second), "1h0m": roughly(time.Hour - 100*time.Millisecond), "1d0h": roughly(24*time.Hour - time.Second),
		"0 B": size(0), "99.9 KB": size(99_940), "100 KB": size(99_960), "40.0 TB": size(4e13),
		"1 other process": otherProcesses(1), "4,199 other processes": otherProcesses(4199),
		"999": grouped(999), "1,000": grouped(1000), "1,234,567": grouped(1234567),
	} {
		if got != want {
			t.Errorf("it is %q, want %q", got, want)
		}
	}
}

// Anyone may have written the data in Redis. It must not control the terminal.
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
	table(&b, 0, [][]string{{"A", ">N"}, {"Zürich\x07", "1"}, {"東", "1,000"}})
	if want := "A             N\nZürich\\a      1\n東        1,000\n"; b.String() != want {
		t.Errorf("%q, want %q", b.String(), want)
	}
}

// JSON does no harm to a terminal either: it escapes control characters, and characters that change the direction
// of text. The decoded values are the same.
func TestEscapedJSON(t *testing.T) {
	t.Parallel()
	device := "Zürich, 東京 😀"
	for _, c := range [][2]rune{{0x7f, 0x9f}, {0xad, 0xad}, {0x61c, 0x61c}, {0x200b, 0x200f}, {0x2028, 0x202e}, {0x2066, 0x2069}, {0xfeff, 0xfeff}, {0xe0001, 0xe0001}} {
		for r := c[0]; r <= c[1]; r++ {
			device += string(r)
		}
	}
	var stdout strings.Builder
	j := &job{out: streams{Writer: bufio.NewWriter(&stdout)}}
	values := json.RawMessage("{\"a\":\"\u009b2J\xff\"}")
	if err := errors.Join(j.printJSON(session{Device: device, Values: values}), j.out.Flush()); err != nil {
		t.Fatal(err)
	}
	line := stdout.String()
	for _, r := range strings.TrimSuffix(line, "\n") {
		if !unicode.IsPrint(r) {
			t.Errorf("%U is printed as it is", r)
		}
	}
	contains(t, line, "Zürich, 東京 😀", `\u009b2J`, `\u202e`, `\u2066`)
	var read session
	if err := json.Unmarshal([]byte(line), &read); err != nil || read.Device != device {
		t.Errorf("%v; read is %q, want %q", err, read.Device, device)
	}
}

// All forms of a record's beginning are read, and other texts are not mistaken for one.
func TestParseHead(t *testing.T) {
	t.Parallel()
	const begun = `{"v":2,"s":"ABCDEFGHIJKLMNOP",`
	at := func(ms int64) time.Time { return time.UnixMilli(ms).UTC() }
	for text, want := range map[string]head{
		begun + `"c":1700000000123,"d":{}}`:                                     {created: at(1700000000123)},
		begun + `"c":1700000000123,"e":` + "\x00\xff\n}":                        {created: at(1700000000123), sealed: true, key: "00ff0a7d"},
		begun + `"c":5,"i":300000,"d":{"e":1}}`:                                 {created: at(5), idle: 5 * time.Minute},
		begun + `"c":5,"u":7,"e":x}`:                                            {created: at(5), until: at(7), sealed: true},
		begun + `"c":5,"g":001700000000123,"d":["ann","",{}]}`:                  {created: at(5)},
		begun + `"c":5,"g":001700000000123,"i":1,"u":7,"d":["ann","",{"e":1}]}`: {created: at(5), idle: time.Millisecond, until: at(7)},
		begun + `"gone":1700000000123}`:                                         {gone: true, ended: at(1700000000123)},
		begun + `"gone":0}`:                                                     {gone: true},
		begun + `"gone":0,"to":"abc"}`:                                          {gone: true, renewed: true},
		begun + `"gone":0,"sealed":"a-_"}`:                                      {gone: true, renewed: true},
	} {
		if got, ok := parseHead(text); !ok || got != want {
			t.Errorf("%s is %+v, %v; want %+v", text, got, ok, want)
		}
	}
	for _, text := range []string{"", "{}", `{"v":3,"s":"A","c":5,"d":{}}`, begun, begun + `"gone":5,"d":{}}`, begun + `"d":{}}`} {
		if got, ok := parseHead(text); ok {
			t.Errorf("%s is taken for %+v", text, got)
		}
	}
}

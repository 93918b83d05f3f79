package main

import (
	"strings"
	"testing"
)

// A cell that somebody else has named stays one cell, and does not make a table wide.
func TestACellLooksLikeOne(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	table(&b, 0, [][]string{{"DEVICE", ">SEEN"}, {"Firefox   1s ago", "3d ago"}, {strings.Repeat("x", 512), "1m ago"}})
	want := "DEVICE" + strings.Repeat(" ", 74) + "    SEEN\n" +
		`"Firefox   1s ago"` + strings.Repeat(" ", 62) + "  3d ago\n" +
		strings.Repeat("x", 40) + "…" + strings.Repeat("x", 39) + "  1m ago\n"
	if b.String() != want {
		t.Errorf("the table is\n%s, want\n%s", b.String(), want)
	}
}

// What looks like spaces is in quotes, too.
func TestACellHasNoHiddenSpaces(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{"a\u2800b": "\"a\u2800b\"", "\u3164": "\"\u3164\"", "POST /order": "POST /order", "\u6f22": "\u6f22"} {
		if got := cell(name); got != want {
			t.Errorf("%q is shown as %q", name, got)
		}
	}
}

// On a terminal a table fits, if the names in it are ordinary, or if only the longest must be shortened. An ID stays
// whole.
func TestATableFitsATerminal(t *testing.T) {
	t.Parallel()
	const id = "nokXbrZKaxmiM5KT.kkKYoIc3zHU"
	for _, test := range []struct {
		width int
		rows  [][]string
		want  string
	}{
		{100, [][]string{{"SESSION", ">HELD FOR", "PROCESS"}, {id, "2.3s", "vm/9974"}},
			"SESSION                       HELD FOR  PROCESS\n" +
				id + "      2.3s  vm/9974\n"},
		{80, [][]string{{"SESSION", ">HELD FOR", ">PROCESSES WAITING", ">LEASE", "PROCESS", "REQUEST"}, {id, "1m30s", "2", "8.9s", "vm/9974", "POST /order/{id}"}},
			"                               HELD  PROCESSES\n" +
				"SESSION                         FOR    WAITING  LEASE  PROCESS  REQUEST\n" +
				id + "  1m30s          2   8.9s  vm/9974  POST /order/{id}\n"},
		{56, [][]string{{"USER", ">SESSIONS", "LAST LOGIN"}, {"ann", "3", "1m ago"}, {"begin" + strings.Repeat("x", 500) + "end", "1", "3h12m ago"}},
			"                                               LAST\n" +
				"USER                                 SESSIONS  LOGIN\n" +
				"ann                                         3  1m ago\n" +
				"beginxxxxxxxxxxxx…xxxxxxxxxxxxxxend         1  3h12m ago\n"},
		{20, [][]string{{"SESSION", "PROCESS"}, {id, "checkout-with-a-long-name-7d9f8b6c5-x2x4z/1"}},
			"SESSION                       PROCESS\n" +
				id + "  checkout-with-…8b6c5-x2x4z/1\n"},
	} {
		var b strings.Builder
		table(&b, test.width, test.rows)
		if b.String() != test.want {
			t.Errorf("in %d columns the table is\n%s, want\n%s", test.width, b.String(), test.want)
		}
	}
}

// A line that is too long for a terminal is continued in a further line. A command is left whole, so that it can be copied.
func TestLinesAreContinued(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	n := &narrow{w: &b, width: 40}
	text := "\x1b[1;31mwrong \x1b[0m maxmemory-policy is volatile-ttl: set it to noeviction; otherwise locks may be evicted\n" +
		"         CONFIG SET maxmemory-policy noeviction\n" +
		"\x1b[32mok    \x1b[0m a line that has forty columns, as\n" +
		"nokXbrZKaxmiM5KT.kkKYoIc3zHU  2.3s  checkout-7d9f8b6c5-x2x4z/1  POST /order/{id}\n"
	for _, part := range strings.SplitAfter(text, "i") { // however it is written
		if _, err := n.Write([]byte(part)); err != nil {
			t.Fatal(err)
		}
	}
	want := "\x1b[1;31mwrong \x1b[0m maxmemory-policy is volatile-ttl:\n" +
		"    set it to noeviction; otherwise\n" +
		"    locks may be evicted\n" +
		"         CONFIG SET maxmemory-policy noeviction\n" +
		"\x1b[32mok    \x1b[0m a line that has forty columns, as\n" +
		"nokXbrZKaxmiM5KT.kkKYoIc3zHU  2.3s\n" +
		"    checkout-7d9f8b6c5-x2x4z/1\n" +
		"    POST /order/{id}\n"
	if b.String() != want {
		t.Errorf("it is\n%s, want\n%s", b.String(), want)
	}
}

// However long a process, a user and a device are called, no line is longer than the terminal. In a pipe they are whole.
func TestNoLineIsLongerThanTheTerminal(t *testing.T) {
	s, st := withRedis(t)
	const process, request, user = "checkout-7d9f8b6c5-x2x4z/1", "POST /order/{id}", "a.user.with.a.long.name@a.company.with.a.long.name.example"
	device := "Mozilla/5.0 " + strings.Repeat("(X11; Linux x86_64) ", 3)
	id := login(t, st, user, device, 1)
	s.Do(t, "SET", keyOf(id)+".lock", "ABCDEFGHIJKLMNOP 1700000000000 "+process+" "+request)
	for _, test := range []struct {
		args  []string
		whole string
	}{
		{[]string{"locks"}, process},
		{[]string{"list", "--user", user}, device[:70]},
		{[]string{"users"}, user},
		{[]string{"show", id}, process + " " + request},
	} {
		c := onTerminal(t, 24, 80, calling(t, s.URL, test.args...))
		c.ends()
		if test.args[0] == "locks" {
			c.shows("    " + process + "  " + request)
		}
		if in := call(t, s.URL, test.args...).stdout; !strings.Contains(in, test.whole) {
			t.Errorf("%q in a pipe has no %q: %s", test.args, test.whole, in)
		}
	}
}

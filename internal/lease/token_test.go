package lease

import (
	"os"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

// A token reads as what went into it. No two are the same. A label is made fit for a line of a log, and
// for a short command.
func TestLabelIsPrintable(t *testing.T) {
	t.Parallel()
	now, seen := time.UnixMilli(1_700_000_000_123), map[string]bool{}
	for label, want := range map[string]string{
		"":                               "",
		"POST /cart":                     "POST /cart",
		" spaces ":                       " spaces ",
		"x/y z/1":                        "x/y z/1",
		"ключ":                           "ключ",
		strings.Repeat("l", 64):          strings.Repeat("l", 64),
		"a\nb\x00c\x7fd":                 "a\uFFFDb\uFFFDc\uFFFDd",
		"escape \x1b[31m":                "escape \uFFFD[31m",
		"no-break\u00a0space, \u202eRTL": "no-break\uFFFDspace, \uFFFDRTL",
		"broken \xff":                    "broken \uFFFD",
		strings.Repeat("x", 65):          strings.Repeat("x", 64),
		strings.Repeat("x", 63) + "ü":    strings.Repeat("x", 63),
		strings.Repeat("x", 62) + "ü":    strings.Repeat("x", 62) + "ü",
		strings.Repeat("日", 30):          strings.Repeat("日", 21),
		strings.Repeat("\x01", 30):       strings.Repeat("\uFFFD", 21),
	} {
		token := newToken(label, now)
		owner, ok := ParseToken(token)
		if !ok || owner.Label != want || owner.PID != os.Getpid() || !owner.Since.Equal(now) || !utf8.ValidString(token) || seen[token[:IDLength]] {
			t.Errorf("label %q: %q is read as %+v, %v", label, token, owner, ok)
		}
		if seen[token[:IDLength]] = true; owner.Host == "" || strings.ContainsAny(owner.Host, " \n") {
			t.Errorf("host %q", owner.Host)
		}
	}
}

func TestOwnerFormat(t *testing.T) {
	t.Parallel()
	const id = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	since := time.UnixMilli(1_700_000_000_000)
	for token, want := range map[string]Owner{
		id + " 1700000000000 web-3/4711":              {"web-3", 4711, "", since},
		id + " 1700000000000 web-3/4711 POST /cart":   {"web-3", 4711, "POST /cart", since},
		id + " 1700000000000 a/b/7 x":                 {"a/b", 7, "x", since},
		"2.1:" + id + " 1700000000000 web-3/4711":     {"web-3", 4711, "", since}, // a Redlock's
		id + " 1700000000000 web-3/4711 a  b\tc\n":    {"web-3", 4711, "a  b\tc\n", since},
		id + " 1700000000000 /0":                      {"", 0, "", since},
		id + id + " 1700000000000 web-3/4711 longer ": {"web-3", 4711, "longer ", since},
	} {
		if got, ok := ParseToken(token); !ok || got != want {
			t.Errorf("%q is read as %+v, %v", token, got, ok)
		}
	}
	for _, junk := range []string{
		"", " ", "value", id, id + " ", id + " 1700000000000", id + " 1700000000000 ", id + " 1700000000000 web-3",
		id + " 1700000000000 web-3/", id + " 1700000000000 web-3/x", id + "  web-3/4711", id + " soon web-3/4711",
		id + " 99999999999999999999 web-3/4711", id + " 1700000000000 web-3/99999999999999999999",
		id[:IDLength-1] + " 1700000000000 web-3/4711", `{"user": 17, "cart": [1, 2, 3], "a": "b/c"}`, "\x00\xff/\xfe 1 2/3",
	} {
		if owner, ok := ParseToken(junk); ok {
			t.Errorf("%q is taken for a token of %+v", junk, owner)
		}
	}
}

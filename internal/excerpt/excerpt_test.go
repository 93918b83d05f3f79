package excerpt

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestOf(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", Most)
	for text, want := range map[string]string{
		"":                          "",
		"cart:42":                   "cart:42",
		"Łukasz 🗝":                  "Łukasz 🗝",
		"a\nb\x1b[2J\x00":           "a\ufffdb\ufffd[2J\ufffd",
		"\u202etxt.exe":             "\ufffdtxt.exe", // would be shown from right to left
		"\xff":                      "\ufffd",
		long:                        long,
		long + "y":                  long[:Most-3] + "…",
		long[1:] + "é":              long[:Most-3] + "…",
		long[4:] + "ééé":            long[4:] + "…",
		strings.Repeat(long, 10000): long[:Most-3] + "…",
	} {
		if got := Of(text); got != want || len(got) > Most || !utf8.ValidString(got) {
			t.Errorf("%.200q becomes %q, want %q", text, got, want)
		}
	}
	if got := Printable("ééé", 5); got != "éé" {
		t.Errorf("cut to 5 bytes it is %q", got)
	}
}

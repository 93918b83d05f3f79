package middleware_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

// asvs are the rows of OWASP ASVS 5.0 that SECURITY.md must go through: all of V7 and
// of V3.3, and what is said about forged requests and caches.
var asvs = strings.Fields(`
	7.1.1 7.1.2 7.1.3 7.2.1 7.2.2 7.2.3 7.2.4 7.3.1 7.3.2 7.4.1 7.4.2 7.4.3 7.4.4 7.4.5
	7.5.1 7.5.2 7.5.3 7.6.1 7.6.2 3.3.1 3.3.2 3.3.3 3.3.4 3.3.5 3.5.1 14.3.2`)

// The table in SECURITY.md is complete: each row says whose it is, and names a test of what is ours.
// TestTheTestsThatPagesNameExist looks for these.
func TestTheSecurityTableIsTrue(t *testing.T) {
	t.Parallel()
	var rows []string
	for _, row := range regexp.MustCompile(`(?m)^\| (\d+\.\d\.\d) \|[^|]+\|([^|]+)\|([^|]+)\|$`).FindAllStringSubmatch(read(t, "SECURITY.md"), -1) {
		number, how, shown := row[1], row[2], row[3]
		rows = append(rows, number)
		ours, theirs := strings.Contains(how, "**Latchkey"), strings.Contains(how, "**Application")
		if !ours && !theirs {
			t.Errorf("%s does not say whose it is", number)
		}
		if ours && !testNamed.MatchString(shown) {
			t.Errorf("%s names no test", number)
		}
	}
	if !slices.Equal(rows, asvs) {
		t.Errorf("the rows are %v, want %v", rows, asvs)
	}
}

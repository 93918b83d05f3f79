package main

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/redistest"
)

// A busy Redis gets longer pauses. But after a stall a sweep goes on at once: it does not pause for twice as long as
// Redis was silent.
func TestRest(t *testing.T) {
	t.Parallel()
	for batch, want := range map[time.Duration]time.Duration{
		time.Millisecond: 2 * time.Millisecond, 40 * time.Millisecond: 80 * time.Millisecond, 2 * time.Second: 200 * time.Millisecond,
	} {
		if got := rest(batch); got != want {
			t.Errorf("after %v a sweep pauses for %v, not %v", batch, got, want)
		}
	}
}

// Redis does nothing else while it looks at the keys of one SCAN. So no command makes it look at many at once.
func TestNoScanTakesLong(t *testing.T) {
	t.Parallel()
	s := redistest.Real(t, "--slowlog-log-slower-than", "0")
	for _, args := range [][]string{{"locks"}, {"top", "--count", "1"}, {"stats"}, {"users"}} {
		s.Do(t, "SLOWLOG", "RESET")
		if r := call(t, s.URL, args...); r.code != exitOK {
			t.Errorf("%q: %+v", args, r)
		}
		scans := 0
		for _, entry := range s.Do(t, "SLOWLOG", "GET", "100").([]any) {
			words := strings.Fields(strings.Trim(fmt.Sprintf("%s", entry.([]any)[3]), "[]"))
			if words[0] != "SCAN" {
				continue
			}
			scans++
			if n, err := strconv.Atoi(words[len(words)-1]); err != nil || n > 150 {
				t.Errorf("%q: %q", args, words)
			}
		}
		if scans == 0 {
			t.Errorf("%q: no SCAN is in the log", args)
		}
	}
}

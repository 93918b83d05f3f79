package main

import (
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// The median of the round trips counts. The finding is wrong only if none of them was short, since a busy machine
// delays only some. If one is short and one is very long, something has delayed the long one. Nodes that are about
// equally far share a line.
func TestDistance(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		took  []int // ms
		level string
		text  string
	}{
		{[]int{1, 1, 1, 1, 1}, fine, "half of 5 round trips took at most 20ms, and none more than 100ms"},
		{[]int{20, 1, 100, 1, 100}, fine, "none more than 100ms"},
		{[]int{1, 1, 101, 1, 1}, note, "1 of 5 round trips took more than 100ms, up to 101ms, and the fastest at most 20ms. Something delays Redis"},
		{[]int{900, 20, 900, 20, 1}, note, "2 of 5 round trips took more than 100ms, up to 900ms"},
		{[]int{480, 1, 480, 470, 50}, note, "3 of 5 round trips"},
		{[]int{21, 1, 21, 1, 21}, note, "more than 20ms"},
		{[]int{150, 150, 150, 150, 150}, note, "more than 100ms"},
		{[]int{900, 900, 900, 900, 200}, note, "more than 500ms"},
		{[]int{300, 302, 301, 304, 201}, wrong, "more than 200ms"},
		{[]int{480, 490, 900, 470, 480}, wrong, "more than 200ms"},
		{[]int{9000, 9000, 9000, 9000, 9000}, wrong, "more than 5s"},
	} {
		var took []time.Duration
		for _, ms := range c.took {
			took = append(took, time.Duration(ms)*time.Millisecond)
		}
		d := &diagnosis{node: &node{}}
		if d.judgeDistance(took); d.findings[0].Level != c.level || !strings.Contains(d.findings[0].Text, c.text) {
			t.Errorf("%v: %+v", c.took, d.findings)
		}
	}
}

// Another program runs one slow command after the other, or blocks Redis half of the time. The pings come at random,
// so they miss that at times, but mostly they notice it.
func TestPingsNoticeSlowCommands(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ slow, free time.Duration }{
		{120 * time.Millisecond, 5 * time.Millisecond},
		{500 * time.Millisecond, 500 * time.Millisecond},
	} {
		synctest.Test(t, func(t *testing.T) {
			const tries = 200
			noticed := 0
			for range tries {
				time.Sleep(rand.N(c.slow + c.free)) // the clock of synctest is not real
				took, err := timed(t.Context(), func() error {
					if at := time.Duration(time.Now().UnixNano()) % (c.slow + c.free); at < c.slow {
						time.Sleep(c.slow - at)
					}
					return nil
				})
				if err != nil {
					t.Fatal(err)
				}
				d := &diagnosis{node: &node{}}
				if d.judgeDistance(took); d.findings[0].Level != fine {
					noticed++
				}
			}
			if noticed < tries*4/5 {
				t.Errorf("%+v: noticed %d times of %d", c, noticed, tries)
			}
		})
	}
}

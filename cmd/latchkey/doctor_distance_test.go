package main

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// The median of the round trips counts. It is only wrong if none of them was short, since a busy machine delays some.
// Nodes that are about equally far share a line.
func TestDistance(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		took  []int // ms
		level string
		text  string
	}{
		{[]int{1, 1, 1, 1, 1}, fine, "at most 20ms"},
		{[]int{900, 20, 900, 20, 1}, fine, "at most 20ms"},
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

// Another program runs a slow command again and again, with short pauses between.
func TestPingsNoticeSlowCommands(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const slow, pause = 120 * time.Millisecond, 5 * time.Millisecond
		begun := time.Now()
		took, err := timed(func() error {
			if since := time.Since(begun) % (slow + pause); since < slow {
				time.Sleep(slow - since)
			}
			return nil
		})
		if slices.Sort(took); err != nil || len(took) != pings || took[len(took)/2] < slow/2 {
			t.Errorf("%v, %v", took, err)
		}
	})
}

package chart

import (
	"math"
	"slices"
	"testing"
)

func TestScale(t *testing.T) {
	for _, tt := range []struct {
		name   string
		values []float64
		log    bool
		ticks  []float64
	}{
		{"linear", []float64{12, 787}, false, []float64{0, 400, 800}},
		{"linear, up to the end", []float64{1000}, false, []float64{0, 500, 1000}},
		{"linear, nearly ten", []float64{9.1}, false, []float64{0, 5, 10}},
		{"linear, nothing", []float64{0, 0}, false, []float64{0, 0.5, 1}},
		{"log", []float64{4, 372}, true, []float64{1, 10, 100, 1000}},
		{"log, below 1", []float64{0.05, 1.9}, true, []float64{0.01, 0.1, 1, 10}},
		{"log, one power", []float64{10}, true, []float64{10, 100}},
		{"log, nothing", []float64{0}, true, []float64{1, 10}},
	} {
		s := scaleOf(tt.values, tt.log)
		if got := s.ticks(); !slices.EqualFunc(got, tt.ticks, close6) {
			t.Errorf("%s: the ticks are %v: they must be %v", tt.name, got, tt.ticks)
		}
		if s.at(tt.ticks[0]) != 0 || !close6(s.at(tt.ticks[len(tt.ticks)-1]), 1) {
			t.Errorf("%s: the scale does not begin at 0 and end at 1", tt.name)
		}
		for _, v := range tt.values {
			if at := s.at(v); at < 0 || at > 1 {
				t.Errorf("%s: %v is at %v, outside", tt.name, v, at)
			}
		}
	}
	if at := (scale{min: 1, max: 100, log: true}).at(10); !close6(at, 0.5) {
		t.Errorf("10 between 1 and 100 is at %v", at)
	}
}

func TestShort(t *testing.T) {
	for f, want := range map[float64]string{
		0: "0", 0.0512: "0.051", 0.5: "0.50", 1.94: "1.9", 9.94: "9.9", 9.96: "10", 21.7: "22", 786.96: "787",
	} {
		if got := Short(f); got != want {
			t.Errorf("%v is %q: it must be %q", f, got, want)
		}
	}
}

func close6(a, b float64) bool { return math.Abs(a-b) <= 1e-6*max(1, math.Abs(a)) }

package plan

import (
	"reflect"
	"slices"
	"testing"
	"time"
)

// A seed gives one plan, and the seeds choose all profiles.
func TestDraw(t *testing.T) {
	chosen := make(map[string]bool)
	for seed := range uint64(300) {
		a, err := Draw(seed, "")
		b, _ := Draw(seed, "")
		if err != nil || !reflect.DeepEqual(a, b) {
			t.Fatalf("seed %d: %v, or the seed gives two different plans", seed, err)
		}
		chosen[a.Profile] = true
		if !slices.IsSortedFunc(a.Requests, func(x, y Request) int { return int(x.At - y.At) }) {
			t.Errorf("seed %d: the requests are not in order", seed)
		}
	}
	if len(chosen) != len(Profiles()) {
		t.Errorf("300 seeds chose %d profiles of %d", len(chosen), len(Profiles()))
	}
	if _, err := Draw(1, "none of them"); err == nil {
		t.Error("a profile that does not exist is accepted")
	}
}

// Shrink keeps only what the plan needs to fail.
func TestShrink(t *testing.T) {
	p, err := Draw(1, "everything")
	if err != nil {
		t.Fatal(err)
	}
	p.Faults = append(p.Faults, Fault{Kind: FlushScripts, At: time.Second})
	p.Observer = Exiting
	needs := func(p Plan) bool {
		seventh := slices.ContainsFunc(p.Requests, func(r Request) bool { return r.Number == 7 })
		ninth := slices.ContainsFunc(p.Requests, func(r Request) bool { return r.Number == 9 && r.Before > 0 })
		return seventh && ninth && p.Any(FlushScripts)
	}
	for i := range p.Requests {
		p.Requests[i].Before = time.Millisecond + 1
	}
	small := Shrink(p, needs, func() bool { return false })
	if len(small.Requests) != 2 || len(small.Faults) != 1 || small.Observer != Well || small.Processes != 1 || !needs(small) {
		t.Errorf("left: %+v", small)
	}
	if r := small.Requests[0]; r.Before != 0 || r.Action != Append || r.Process != 0 {
		t.Errorf("#7 could be simpler: %+v", r)
	}
	if same := Shrink(p, needs, func() bool { return true }); len(same.Requests) != len(p.Requests) {
		t.Error("Shrink went on although enough returned true")
	}
}

package main

import (
	"reflect"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/cmd/bench/app"
)

func TestNewTurn(t *testing.T) {
	seen := tally{
		took: 100, rounds: []float64{40, 60}, latencies: []float64{4, 1, 3, 2},
		requests: 4, late: 1, writes: 4, kept: 3, unfair: 1.5,
	}
	redis := cost{redis: 80 * time.Microsecond, reads: 6, commands: map[string]int{"get": 4, "set": 2}}
	before := app.Stats{CPU: time.Second, Mallocs: 1000, Slow: 10, Slept: time.Second}
	after := app.Stats{CPU: time.Second + 400*time.Microsecond, Mallocs: 1800, Slow: 14, Slept: time.Second + 22*time.Millisecond}
	want := turn{
		round: 50, perSecond: 30, p50: 2, p99: 4, max: 4, unfair: 1.5, handler: 5.5,
		requests: 4, writes: 4, kept: 3,
		redisCPU: 20, appCPU: 100, mallocs: 200, roundTrips: 1.5,
		commands: map[string]float64{"get": 1, "set": 0.5},
	}
	got := newTurn(seen, redis, before, after)
	if !reflect.DeepEqual(got, want) {
		t.Errorf("the turn is\n%+v: it must be\n%+v", got, want)
	}
	if n := got.allCommands(); n != 1.5 {
		t.Errorf("there are %v commands: it must be 1.5", n)
	}
}

func TestCostSince(t *testing.T) {
	before := cost{redis: time.Second, reads: 10, commands: map[string]int{"get": 5}}
	after := cost{redis: 3 * time.Second, reads: 15, commands: map[string]int{"get": 7, "set": 1}}
	want := cost{redis: 2 * time.Second, reads: 4, commands: map[string]int{"get": 2, "set": 1}}
	if got := after.since(before); !reflect.DeepEqual(got, want) {
		t.Errorf("the cost is %+v: it must be %+v", got, want)
	}
}

package main

import (
	"testing"
	"time"
)

func TestSummary(t *testing.T) {
	visits := []visit{
		{take: 1, hold: 2, release: 3},
		{take: 5, hold: 4, release: 7},
		{take: 5000, gaveUp: true},
	}
	spent := cost{redis: 4 * time.Millisecond, commands: map[string]int{"evalsha": 9, "eval": 1, "get": 20}}
	got, served := summary(visits, time.Second, spent)
	want := figures{
		take: 5, takeP99: 5000, hold: 2, release: 3, releaseP99: 7,
		perSecond: 2, roundTrips: 7, redisCPU: 2, gaveUp: 1,
	}
	if got != want || served != 2 {
		t.Errorf("%d served:\n%+v: it must be\n%+v", served, got, want)
	}
	if _, served := summary(visits[2:], time.Second, spent); served != 0 {
		t.Errorf("%d served where all gave up", served)
	}
}

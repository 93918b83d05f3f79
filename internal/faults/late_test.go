package faults

import (
	"slices"
	"sync"
	"time"
)

// delays are the times at which this machine was late to wake somebody, and by how much. What is
// promised to take no longer than some time takes longer by so much where no processor is free.
var delays struct {
	sync.Mutex
	at []time.Time
	by []time.Duration
}

// watchMachine measures that, for ever.
func watchMachine() {
	const each = 20 * time.Millisecond
	for begun := time.Now(); ; begun = time.Now() {
		<-time.After(each)
		if by := time.Since(begun) - each; by > each/4 {
			delays.Lock()
			delays.at, delays.by = append(delays.at, begun), append(delays.by, by)
			delays.Unlock()
		}
	}
}

// delaysSince returns by how much the machine has been late since a moment, each time.
func delaysSince(moment time.Time) []time.Duration {
	delays.Lock()
	defer delays.Unlock()
	first, _ := slices.BinarySearchFunc(delays.at, moment, time.Time.Compare)
	return slices.Clone(delays.by[first:])
}

// lateSince returns that in all.
func lateSince(moment time.Time) (sum time.Duration) {
	for _, by := range delaysSince(moment) {
		sum += by
	}
	return sum.Round(time.Millisecond)
}

// stalledSince reports whether the machine was late by so much at once that leases may have run out
// which nothing else has ended.
func stalledSince(moment time.Time) bool {
	return slices.ContainsFunc(delaysSince(moment), func(by time.Duration) bool { return by > lease/3 })
}

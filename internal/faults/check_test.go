package faults

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/gomodule/redigo/redis"
)

// These are the assertions that a test may make about its scene. scene_test.go has the assertions that hold after each
// fault.

// allAnswered asserts that no visitor noticed the fault, unless the machine has stalled.
func (s *scene) allAnswered() {
	s.Helper()
	if sum := s.summary(); sum.Silent > 0 && !stalledSince(s.begun) {
		s.Errorf("%d requests were not answered", sum.Silent)
	}
}

// backWithin asserts how soon all visitors were served again.
func (s *scene) backWithin(limit time.Duration) {
	s.Helper()
	if late := lateSince(s.over); s.recovered > limit+late {
		s.Errorf("all visitors were served again only after %v, more than %v and the %v by which the machine was late",
			s.recovered.Round(time.Millisecond), limit, late)
	}
}

// happened asserts that something has happened at least so many times.
func happened(t *testing.T, what string, n, least int) {
	t.Helper()
	if n < least {
		t.Errorf("%s %d times, want at least %d", what, n, least)
	}
}

// logged counts how often the demos' logs have a text.
func (s *scene) logged(text string) (n int) {
	for _, d := range s.demos {
		n += strings.Count(d.Log(), text)
	}
	return n
}

func (s *scene) mustHaveLogged(text string) {
	s.Helper()
	happened(s.T, "a demo has logged "+text, s.logged(text), 1)
}

// empties returns how many requests did not find a session that had existed.
func (s *scene) empties() (n int) {
	for _, v := range s.visitors {
		n += v.Empties()
	}
	return n
}

// info returns the number behind a text in INFO, such as "rejected_connections:"; 0 if the text is
// missing.
func info(t *testing.T, r *redistest.Server, text string) (n int) {
	t.Helper()
	all, err := redis.String(r.Do(t, "INFO", "everything"), nil)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(all) {
		if _, err := fmt.Sscanf(line, text+"%d", &n); err == nil {
			return n
		}
	}
	return 0
}

// recordWith returns the record that contains a text.
func (s *scene) recordWith(text string) string {
	s.Helper()
	for _, key := range recordKeys(s.T, s.redis) {
		if record, _ := s.redis.Get(s.T, key); strings.Contains(record, text) {
			return record
		}
	}
	s.Errorf("no record has %s", text)
	return ""
}

// recordKeys returns the keys of all sessions.
func recordKeys(t *testing.T, r *redistest.Server) (keys []string) {
	t.Helper()
	for _, key := range r.Keys(t) {
		if strings.HasSuffix(key, "}") {
			keys = append(keys, key)
		}
	}
	return keys
}

// guards returns the keys of all locks and queues.
func guards(t *testing.T, r *redistest.Server) []string {
	t.Helper()
	return guardsIn(r.Keys(t))
}

func guardsIn(keys []string) []string {
	return slices.DeleteFunc(keys, func(key string) bool {
		return !strings.HasSuffix(key, ".lock") && !strings.HasSuffix(key, ".queue")
	})
}

// stagedForAMinute asserts that no staged record outlives its minute.
func (s *scene) stagedForAMinute() {
	s.Helper()
	for _, key := range slices.DeleteFunc(s.keys(), func(key string) bool { return !isStaged(key) }) {
		if left, _ := s.at(key).Do(s.T, "PTTL", key).(int64); left == -1 || left > time.Minute.Milliseconds() {
			s.Errorf("%s lives %d ms more", key, left)
		}
	}
}

// allFree asserts that all locks and queues are soon gone.
func allFree(t *testing.T, r *redistest.Server) {
	t.Helper()
	eventually(t, lease+2*timeout, "no lock and no queue is left", func() bool { return len(guards(t, r)) == 0 })
}

// delays are the times at which this machine was late to wake a goroutine, and by how much. A promised
// time may take that much longer if no processor is free.
var delays struct {
	sync.Mutex
	at []time.Time
	by []time.Duration
}

// watchMachine measures the delays, for ever.
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

// delaysSince returns the delays that began after a moment.
func delaysSince(moment time.Time) []time.Duration {
	delays.Lock()
	defer delays.Unlock()
	first, _ := slices.BinarySearchFunc(delays.at, moment, time.Time.Compare)
	return slices.Clone(delays.by[first:])
}

// lateSince returns the sum of the delays since a moment.
func lateSince(moment time.Time) (sum time.Duration) {
	for _, by := range delaysSince(moment) {
		sum += by
	}
	return sum.Round(time.Millisecond)
}

// stalledSince reports whether one delay was so long that leases may have expired only because of it.
func stalledSince(moment time.Time) bool {
	return slices.ContainsFunc(delaysSince(moment), func(by time.Duration) bool { return by > lease/3 })
}

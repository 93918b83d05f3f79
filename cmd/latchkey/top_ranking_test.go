package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// after adds looks to a ranking. Each is a line of sessions: a:2 is held while two processes wait for it.
func (r *ranking) after(looks ...string) *ranking {
	for _, look := range looks {
		var held []holder
		for _, word := range strings.Fields(look) {
			h := holder{Process: "web/1"}
			if n, _ := fmt.Sscanf(word, "%1s:%d", &h.Session, &h.Waiting); n == 0 {
				panic(word)
			}
			r.find(h.Session, "node")
			held = append(held, h)
		}
		r.add(held, func(*busy) bool { return true }, time.Now())
	}
	return r
}

func newRanking() *ranking { return &ranking{known: make(map[string]*busy)} }

func (r *ranking) summary() string {
	var all []string
	for _, b := range r.busiest() {
		all = append(all, fmt.Sprintf("%s %.0f %% %s", b.Session, 100*b.Busy, b.State))
	}
	return strings.Join(all, ", ")
}

// The session that was held in most of the looks comes first, then the one for which most processes wait.
func TestRanking(t *testing.T) {
	t.Parallel()
	for want, looks := range map[string][]string{
		"":                                      {"", ""},
		"a 100 % held":                          {"a", "a"},
		"a 75 % held, b 50 % free":              {"a b", "b", "a", "a"},
		"b 100 % held, a 100 % held":            {"a b:2", "a:1 b:2"},
		"c 50 % held, a 50 % free, b 50 % free": {"a b", "c"}, // c was free in the first look, as far as is known
		"b 100 % held, a 2 % free":              append([]string{"a b"}, slices.Repeat([]string{"b"}, window-1)...),
		"b 100 % held":                          append([]string{"a b"}, slices.Repeat([]string{"b"}, window)...),
	} {
		if got := newRanking().after(looks...).summary(); got != want {
			t.Errorf("after %q: %q, want %q", looks, got, want)
		}
	}
}

// While a master is away, nothing is known of its sessions, and their share does not change.
func TestRankingWithoutAMaster(t *testing.T) {
	t.Parallel()
	r := newRanking().after("a b", "b", "a b")
	r.add([]holder{{Session: "a"}}, func(b *busy) bool { return b.Session == "a" }, time.Now())
	if got, want := r.summary(), "b 100 % unknown, a 75 % held"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got, want := r.after("b").summary(), "b 100 % held, a 60 % free"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// A session that SCAN has found while it was held, but that was free when it was looked up, is looked up again.
func TestRankingRemembersWhatWasFound(t *testing.T) {
	t.Parallel()
	r := newRanking()
	r.find("a", "node")
	for range window {
		if r.known["a"] == nil {
			t.Fatal("a is forgotten")
		}
		r.after("")
	}
	if got := r.summary(); got != "" || r.known["a"] != nil {
		t.Errorf("%q, %v", got, r.known)
	}
}

// However many sessions there are, few are looked up that are not held now, and these are the busiest. All that are held are
// shown.
func TestARankingIsBounded(t *testing.T) {
	t.Parallel()
	r := newRanking()
	for range window {
		held := []holder{{Session: "hot"}}
		r.find("hot", "node")
		for range 2 * knownAtMost {
			h := holder{Session: fmt.Sprint(len(held), "-", r.looks)}
			r.find(h.Session, "node")
			held = append(held, h)
		}
		r.add(held, func(*busy) bool { return true }, time.Now())
		now := 0
		for _, b := range r.busiest() {
			if b.State == "held" {
				now++
			}
		}
		if now != len(held) || len(r.known) > len(held)+knownAtMost {
			t.Fatalf("%d of %d are shown as held, and %d are known", now, len(held), len(r.known))
		}
	}
	if got := r.busiest()[0]; got.Session != "hot" {
		t.Errorf("%+v", got)
	}
}

// While the lock is on its way to a waiting process, the session is held, and its last holder stays known.
func TestRankingOfAPassingLock(t *testing.T) {
	t.Parallel()
	r := newRanking()
	for _, h := range []holder{{Session: "a", Process: "web/1", Request: "POST /order"}, {Session: "a", Passing: true, Waiting: 1}} {
		r.find("a", "node")
		r.add([]holder{h}, func(*busy) bool { return true }, time.Now())
	}
	if b := r.after("").busiest()[0]; b.Process != "web/1" || b.Request != "POST /order" || b.State != "free" || b.Waiting != 0 {
		t.Errorf("%+v", b)
	}
}

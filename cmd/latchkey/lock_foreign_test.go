package main

import (
	"strings"
	"testing"
)

// A lock that another program has written may have no timeout, and a queue of any size.
func TestLocksOfAnotherProgram(t *testing.T) {
	s, _ := withRedis(t)
	lock := keyOf(first) + ".lock"
	s.Do(t, "SET", lock, "abcdefghijklmnop 1795993000000 web-1/42 POST /order")
	s.Do(t, "SETRANGE", lock+".queue", 64<<20, "x y z") // what is so far behind is not read
	contains(t, must(t, s.URL, "locks"), "endless", "web-1/42", "POST /order")
	if all := must(t, s.URL, "locks", "--json"); !strings.Contains(all, `"lease_seconds":0,"endless":true,"waiting":1`) {
		t.Error(all)
	}
}

// A queue that is no text counts as nobody, and not as the words of Redis's refusal.
func TestQueueOfAnotherType(t *testing.T) {
	s, st := withRedis(t)
	begin(t, st, first, "{}")
	lock := keyOf(first) + ".lock"
	s.Do(t, "SET", lock, "abcdefghijklmnop 1795993000000 web-1/42 POST /order", "PX", 60_000)
	s.Do(t, "SADD", lock+".queue", "z")
	for _, args := range [][]string{{"locks", "--json"}, {"show", first, "--json"}} {
		if out := must(t, s.URL, args...); !strings.Contains(out, `"waiting":0`) {
			t.Errorf("%q: %s", args, out)
		}
	}
}

package main

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/records"
	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/store"
)

// near checks that a time is about what it should be.
func near(t testing.TB, what string, is, want time.Time) {
	t.Helper()
	if d := is.Sub(want).Abs(); d > 15*time.Second {
		t.Errorf("%s is %v, want about %v", what, is, want)
	}
}

// show shows all that Redis knows of a session, but its values only on request. It does not prolong the
// session.
func TestShow(t *testing.T) {
	s, st := withRedis(t)
	r := records.Record{Data: []byte(`{"visits":3,"name":"Ann \u001b[2J","cart":[1,2]}`), Created: time.Now().Add(-time.Hour)}
	if err := records.Of(st).CreateRecord(t.Context(), first, r, records.Terms{}); err != nil {
		t.Fatal(err)
	}
	key := "latchkey:{" + first + "}"
	s.Do(t, "PEXPIRE", key, (20 * time.Minute).Milliseconds()) // ten minutes after it was used

	text := must(t, s.URL, "show", first, "--ttl", "30m")
	contains(t, text, "session    "+first+"\n", "created    ", ", 1h0m ago\n", "state      free\n", " bytes\n")
	says(t, text, `(?m)^last used  .*, `+tenMinutesAgo+`$`, `(?m)^expires    .*, `+inTwentyMinutes+`$`)
	if strings.Contains(text, "visits") || strings.Contains(text, "Ann") {
		t.Errorf("show prints the values: %s", text)
	}
	text = must(t, s.URL, "show", first, "--values")
	contains(t, text, "last used  not known without --ttl\n", "\n  visits  3\n", "\n  cart    [1,2]\n", `"Ann \u001b[2J"`)

	found := decoded[session](t, s.URL, "show", first, "--ttl=30m")
	near(t, "its end", *found.Expires, time.Now().Add(20*time.Minute))
	near(t, "its last use", *found.LastUsed, time.Now().Add(-10*time.Minute))
	if found.Values != nil || found.Holder != nil || found.Bytes < 50 || found.Encrypted {
		t.Errorf("%+v", found)
	}
	if found := decoded[session](t, s.URL, "show", first, "--values"); string(found.Values) != `{"visits":3,"name":"Ann \u001b[2J","cart":[1,2]}` {
		t.Errorf("its values are %s", found.Values)
	}
	begin(t, st, second, "{}")
	contains(t, must(t, s.URL, "show", second, "--values"), "\nthe session holds no values\n")
	if left := s.Do(t, "PTTL", key).(int64); left > (20 * time.Minute).Milliseconds() {
		t.Errorf("the session has %d ms left", left)
	}
}

// The time of last use is not guessed if the timeouts do not show it.
func TestLastUseIsNotGuessed(t *testing.T) {
	t.Parallel()
	now := time.Now()
	o := &options{lifetime: 24 * time.Hour}
	for name, c := range map[string]struct {
		created, left, idle time.Duration
		known               bool
	}{
		"all is as usual":                        {-time.Hour, 20 * time.Minute, 30 * time.Minute, true},
		"the timeout is not given":               {-time.Hour, 20 * time.Minute, 0, false},
		"the program's timeout is longer":        {-time.Hour, 50 * time.Minute, 30 * time.Minute, false},
		"the program's timeout is shorter":       {-time.Minute, 5 * time.Minute, 30 * time.Minute, false},
		"the lifetime ends before the timeout":   {-24*time.Hour + 10*time.Minute, 10 * time.Minute, 30 * time.Minute, false},
		"the session is older than the lifetime": {-25 * time.Hour, 20 * time.Minute, 30 * time.Minute, false},
	} {
		if used := o.lastUsed(now.Add(c.created), now.Add(c.left), c.idle, now); (used != nil) != c.known {
			t.Errorf("%s: %v", name, used)
		}
	}
}

// If a session is held, show and locks say by which process, since when, and how many processes wait.
func TestWhoHolds(t *testing.T) {
	s, st := withRedis(t)
	begin(t, st, first, "{}")
	begin(t, st, second, "{}")
	if text := must(t, s.URL, "locks"); text != "no session with the prefix \"latchkey:\" is held\n" {
		t.Errorf("locks: %q", text)
	}
	if text := must(t, s.URL, "locks", "--json"); text != `{"locks":[],"held":0,"away":[],"slots_moved":false}`+"\n" {
		t.Errorf("locks --json: %q", text)
	}
	hold(t, st, first, "POST /order")
	time.Sleep(10 * time.Millisecond) // so that it is the first
	hold(t, st, second, "GET /\x1b[2J")
	waiting, cancel := context.WithCancel(t.Context())
	defer cancel()
	for range 2 {
		another := opened(t, s.URL, store.Options{Timeout: 10 * time.Second})
		go records.Of(another).Take(waiting, first, records.Terms{LockWait: time.Minute})
	}
	redistest.Eventually(t, "two wait", func() bool {
		return strings.Count(get(t, s, "latchkey:{"+first+"}.lock.queue"), "latchkey:wake:") == 2
	})

	all := decoded[look](t, s.URL, "locks").Locks
	if len(all) != 2 || all[0].Session != first || all[1].Session != second {
		t.Fatalf("%+v", all)
	}
	if h := all[0]; h.Request != "POST /order" || h.Waiting != 2 || h.Lease <= 0 || h.Lease > 10 || !strings.Contains(h.Process, "/") {
		t.Errorf("%+v", h)
	}
	near(t, "since", *all[0].Since, time.Now())
	text := must(t, s.URL, "locks")
	contains(t, text, "SESSION ", "HELD FOR", "PROCESS", "REQUEST", "LEASE", "PROCESSES WAITING", first, "POST /order", all[0].Process)
	if strings.Contains(text, "\x1b") || strings.Count(text, "\n") != 3 {
		t.Errorf("locks: %q", text)
	}
	contains(t, must(t, s.URL, "show", first), "state      held by "+all[0].Process+" POST /order for ", "; 2 other processes waiting\n")
	if found := decoded[session](t, s.URL, "show", first); found.Holder == nil || found.Holder.Waiting != 2 {
		t.Errorf("%+v", found.Holder)
	}
}

// With --limit, locks and watch show the sessions held longest, in whatever order Redis finds them, and count all.
func TestLocksHeldLongest(t *testing.T) {
	s, st := withRedis(t)
	begin(t, st, first, "{}")
	ids := guests(t, st, 20)
	hold(t, st, first, "POST /slow")
	time.Sleep(10 * time.Millisecond) // so that it is the longest
	for _, id := range ids {
		hold(t, st, id, "POST /quick")
	}
	if seen := decoded[look](t, s.URL, "locks", "--limit", "1"); len(seen.Locks) != 1 || seen.Locks[0].Session != first || seen.Held != 21 {
		t.Errorf("%+v", seen)
	}
	contains(t, must(t, s.URL, "locks", "--limit", "1"), first, "\n21 sessions held; --limit 0 shows all\n")
	seen := look{Locks: []holder{{Session: first}}, Held: 21, waiting: 2}
	contains(t, (&job{}).watchPicture(seen, time.Now()).text, "21 held, 2 other processes waiting\n", first)
}

// If a key does not hold a session or a lock, the commands say so, and do not fail otherwise.
func TestWhatIsNoSession(t *testing.T) {
	s, st := withRedis(t)
	key := "latchkey:{" + first + "}"
	fails(t, call(t, s.URL, "show", first), exitError, first, "there is none")
	s.Do(t, "HSET", key, "a", "b")
	s.Do(t, "HSET", key+".lock", "a", "b")
	fails(t, call(t, s.URL, "show", first), exitError, "does not hold a session")
	must(t, s.URL, "locks")
	s.Do(t, "SET", key+".lock", "what is this?")
	contains(t, must(t, s.URL, "locks"), "(unknown)")
	s.Do(t, "SET", key+".lock", "latchkey:wake:AAAA/3")
	contains(t, must(t, s.URL, "locks"), "(passing to the next process)")
	for _, text := range []string{"junk", "", `{"v":3,"s":"ABCDEFGHIJKLMNOP","c":1,"d":{}}`} {
		s.Do(t, "DEL", key)
		s.Do(t, "SET", key, text+" ")
		fails(t, call(t, s.URL, "show", first), exitError, "cannot be read")
	}
	begin(t, st, second, "{}")
	if err := hold(t, st, second, "").Renew(t.Context(), id(1), []byte("{}")); err != nil {
		t.Fatal(err)
	}
	for _, command := range []string{"show", "end", "list"} {
		fails(t, call(t, s.URL, command, second), exitError, "it got a new ID ", " ago")
	}
	if err := hold(t, st, id(1), "").Destroy(t.Context()); err != nil {
		t.Fatal(err)
	}
	fails(t, call(t, s.URL, "show", id(1)), exitError, "it was ended ", " ago")
	s.Do(t, "SET", key, `{"v":2,"s":"endedOffTheList0","gone":0}`)
	fails(t, call(t, s.URL, "show", first), exitError, "it was ended a moment ago")
	fails(t, call(t, s.URL, "show", first, "--prefix", "other:"), exitError, "there is none")
}

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/store"
	"github.com/a2139e8d/latchkey/store/rueidisstore"
	"github.com/redis/rueidis"
)

// piped runs the command with stdin. It may print any number of errors.
func piped(t *testing.T, url, stdin string, args ...string) result {
	t.Helper()
	c := calling(t, url, args...)
	var stdout, stderr bytes.Buffer
	c.Stdin, c.Stdout, c.Stderr = strings.NewReader(stdin), &stdout, &stderr
	_ = c.Run() // the exit code says it
	return result{stdout.String(), stderr.String(), c.ProcessState.ExitCode()}
}

// guests returns the IDs of n sessions of guests.
func guests(t *testing.T, st *store.Store, n int) (ids []string) {
	t.Helper()
	for i := range n {
		begin(t, st, id(i), "{}")
		ids = append(ids, id(i))
	}
	return ids
}

func lines(ids ...string) string { return strings.Join(ids, "\n") + "\n" }

// end ends any number of sessions, on the command line or on stdin. A session that cannot be ended is named on
// stderr, and makes the exit status 1. The others are ended.
func TestEndOfSeveral(t *testing.T) {
	s, st := withRedis(t)
	const n = 50 // more than are asked for at once
	all := guests(t, st, n)
	s.Do(t, "SET", keyOf(all[7]), "junk")

	r := piped(t, s.URL, "", "end", all[0], first, second, all[1])
	if r.stdout != lines(all[0], all[1])+"2 sessions ended\n" || r.code != exitError || strings.Count(r.stderr, "\n") != 2 {
		t.Errorf("%+v", r)
	}
	contains(t, r.stderr, "latchkey: session "+first+": there is none", "latchkey: session "+second+": there is none")

	r = piped(t, s.URL, "\n  "+all[2]+"\t\r\n\n"+lines(all[3:]...)+all[4], "end", "-", "--json")
	var ended struct{ Ended []string }
	if err := json.Unmarshal([]byte(r.stdout), &ended); err != nil || !slices.Equal(ended.Ended, append(slices.Clone(all[2:7]), all[8:]...)) {
		t.Errorf("%v: %+v", err, r)
	}
	if contains(t, r.stderr, all[7], "it was left as it is"); strings.Count(r.stderr, "\n") != 1 || r.code != exitError {
		t.Errorf("%+v", r)
	}
	for command, prints := range map[string][2]string{"end": {"0 sessions ended\n", `{"ended":[]}` + "\n"}, "list": {"", "[]\n"}} {
		for i, args := range [][]string{{command, "-"}, {command, "-", "--json"}} {
			if r := piped(t, s.URL, lines(all[0], first), args...); r.stdout != prints[i] || r.code != exitError || strings.Count(r.stderr, "\n") != 2 {
				t.Errorf("%q with unknown IDs: %+v", args, r)
			}
		}
	}
	for command, prints := range map[string]string{"end": `{"ended":[]}` + "\n", "list": "[]\n"} { // JSON is there for one ID, too
		if r := call(t, s.URL, command, first, "--json"); r != (result{prints, "latchkey: session " + first + ": there is none: the ID is unknown, or it has expired\n", exitError}) {
			t.Errorf("%s with an unknown ID: %+v", command, r)
		}
	}
	for _, nothing := range []string{"", "\n \n"} {
		if r := piped(t, s.URL, nothing, "end", "-"); r != (result{"0 sessions ended\n", "", exitOK}) {
			t.Errorf("%q: %+v", nothing, r)
		}
	}
}

// The IDs on stdin are checked before Redis is asked. The error names the line, but does not repeat it.
func TestWrongInput(t *testing.T) {
	t.Parallel()
	const secret = "hunter2"
	for input, want := range map[string]string{
		first + "\n\n" + secret + "\n" + second:        "line 3 of stdin: ",
		first + " " + second:                           "line 1 of stdin: ",
		first + "\n" + strings.Repeat(secret, 100_000): "line 2 of stdin is too long",
	} {
		for _, command := range []string{"end", "list"} {
			r := piped(t, "redis://127.0.0.1:1", input, command, "-")
			fails(t, r, exitUsage, want, "no session was touched")
			if strings.Contains(r.stderr, secret) {
				t.Errorf("the error repeats the line: %s", r.stderr)
			}
		}
	}
}

// What list and users print can be the input of end.
func TestPipelines(t *testing.T) {
	s, st := withRedis(t)
	for n := range 3 {
		login(t, st, "ann", "", n)
		login(t, st, "bob", "", n)
	}
	var input []string
	for _, u := range decoded[loggedInReport](t, s.URL, "users").Users {
		input = append(input, ids(decoded[[]device](t, s.URL, "list", "--user", u.User))[1:]...)
	}
	if r := piped(t, s.URL, lines(input...), "end", "-"); r != (result{lines(input...) + "4 sessions ended\n", "", exitOK}) {
		t.Errorf("%+v", r)
	}
	if got := decoded[loggedInReport](t, s.URL, "users").summary(); len(got) != 2 || got[0][4:]+got[1][4:] != "11" {
		t.Errorf("%q are left", got)
	}
}

// list shows which users the sessions with some IDs belong to.
func TestListOfIDs(t *testing.T) {
	s, st := withRedis(t)
	begin(t, st, first, "{}")
	anns, bobs := login(t, st, "ann", "Firefox", 1), login(t, st, "bob\x1b[2J", "", 2)
	r := piped(t, s.URL, lines(bobs, second, first, anns), "list", "-", "--ttl", "30m")
	rows := strings.Split(r.stdout, "\n")
	if len(rows) != 5 || !strings.HasPrefix(rows[1], bobs) || !strings.HasPrefix(rows[2], first) || !strings.HasPrefix(rows[3], anns) || r.code != exitError {
		t.Fatalf("%+v", r)
	}
	contains(t, rows[0], "SESSION", " USER ", "DEVICE")
	contains(t, rows[1], ` bob\x1b[2J `, "2h0m ago")
	contains(t, rows[3], " ann ", "Firefox", "1h0m ago")
	says(t, rows[3], inThirtyMinutes)
	if r.stderr != "latchkey: session "+second+": there is none: the ID is unknown, or it has expired\n" {
		t.Errorf("%q", r.stderr)
	}
	found := decoded[[]device](t, s.URL, "list", anns, first)
	if len(found) != 2 || found[0].User != "ann" || found[0].Device != "Firefox" || found[1].User != "" {
		t.Errorf("%+v", found)
	}
	near(t, "its end", found[0].Expires, found[0].Created.Add(90*60e9))
	if r := piped(t, s.URL, "", "list", "-", "--json"); r != (result{"[]\n", "", exitOK}) {
		t.Errorf("%+v", r)
	}
}

// If the only server is unavailable, the sessions that are left are not tried. If a master of a cluster is unavailable,
// the sessions of the others are ended.
func TestEndOfSeveralWhileRedisIsAway(t *testing.T) {
	t.Parallel()
	c := redistest.NewCluster(t, 3, 0, "--cluster-require-full-coverage", "no")
	st, err := rueidisstore.Open(rueidis.ClientOption{InitAddress: []string{c.Nodes[0].Addr}}, patient)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { st.Close() })
	all := guests(t, st, 10)
	lost, slots := 0, c.SlotsOf(t, c.Nodes[2])
	for _, id := range all {
		if slices.Contains(slots, c.Slot(t, "{"+id+"}")) {
			lost++
		}
	}
	c.Nodes[2].Stop(t)
	r := piped(t, "redis://"+c.Nodes[0].Addr, lines(all...), "end", "-")
	contains(t, r.stdout, fmt.Sprintf("\n%d sessions ended\n", len(all)-lost))
	if strings.Count(r.stderr, "\n") != lost || lost == 0 || r.code != exitError {
		t.Errorf("%d sessions are on the lost master: %+v", lost, r)
	}

	s := redistest.Real(t)
	held := guests(t, opened(t, s.URL, store.Options{}), 20)
	s.Pause(t)
	defer s.Resume(t)
	broken := piped(t, s.URL, lines(held...), "end", "-", "--timeout", "100ms")
	if broken.code != exitError || broken.stdout != "" || strings.Count(broken.stderr, "\n") != 1 {
		t.Errorf("%+v", broken)
	}
}

// The only server need not be asked again and again while it is unavailable.
func TestUntried(t *testing.T) {
	t.Parallel()
	synctest.Test(t, untried)
}

func untried(t *testing.T) {
	for _, c := range []struct {
		oneServer    bool
		failsFrom    int
		asked, least int
	}{
		{true, 100, 100 + idsAtOnce, 101},
		{true, 0, 1, 1},
		{false, 100, 1000, 1000},
		{false, 0, 1000, 1000},
	} {
		j := &job{ctx: t.Context(), options: &options{}}
		for i := range 1000 {
			j.ids = append(j.ids, id(i))
		}
		var asked atomic.Int64
		errs := j.tryEachID(j.ids, c.oneServer, func(id string) error {
			asked.Add(1)
			time.Sleep(time.Millisecond) // in fake time: all that are asked for at once begin before one ends
			if id < j.ids[c.failsFrom] {
				return nil
			}
			return failure{at: "127.0.0.1:1", why: "no reply within 2s"}
		})
		untried := 0
		for i, err := range errs {
			if i < c.failsFrom && err != nil {
				t.Errorf("session %d: %v", i, err)
			}
			if err == errNotTried {
				untried++
			}
		}
		if got := int(asked.Load()); got+untried != 1000 || got > c.asked || got < c.least {
			t.Errorf("%+v: %d are asked for, %d not", c, got, untried)
		}
	}
}

// If another program has written the list of a user's sessions, end says so, and that the session may have ended.
func TestEndBesideAForeignList(t *testing.T) {
	s, st := withRedis(t)
	id := login(t, st, "ann", "", 0)
	s.Do(t, "SET", "latchkey:{"+tagOf(id)+"}.list", "junk")
	r := call(t, s.URL, "end", id)
	fails(t, r, exitError, "WRONGTYPE", ": another program has written one of Latchkey's keys", ": perhaps it is ended")
}

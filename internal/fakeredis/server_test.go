package fakeredis_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/fakeredis"
)

func TestACloneGoesItsOwnWay(t *testing.T) {
	s := fakeredis.New()
	c := s.Connect(nil)
	sha := c.Do(epoch, "SCRIPT", "LOAD", "return redis.call('GET', 'k')").Text()
	c.Do(epoch, "SET", "k", "1")
	c.Do(epoch, "LPUSH", "list", "a")
	s.Full = true

	clone := s.Clone()
	d := clone.Connect(nil)
	if got := d.Do(epoch, "EVALSHA", sha, "0").Text(); got != "1" {
		t.Errorf("the clone's script returns %q", got)
	}
	if got := d.Do(epoch, "SET", "k", "2").Text(); got != fakeredis.ErrFull {
		t.Errorf("the clone is not full: %q", got)
	}
	s.Full = false
	c.Do(epoch, "SCRIPT", "FLUSH")
	c.Do(epoch, "SET", "k", "3")
	c.Do(epoch, "LPUSH", "list", "b")
	c.Do(epoch, "SUBSCRIBE", "news")
	clone.Full = false
	d.Do(epoch, "LPUSH", "list", "c")
	if got := d.Do(epoch, "EVALSHA", sha, "0").Text(); got != "1" {
		t.Errorf("after changes of the original the clone's script returns %q", got)
	}
	if got := d.Do(epoch, "PUBLISH", "news", "x").Int(); got != 0 {
		t.Errorf("the clone has %d of the original's listeners", got)
	}
	const original, cloned = "\"k\" -1 \"3\"\n\"list\" -1 [\"b\" \"a\"]\n", "\"k\" -1 \"1\"\n\"list\" -1 [\"c\" \"a\"]\n"
	if got := s.Dump(epoch); got != original {
		t.Errorf("original:\n%s", got)
	}
	if got := clone.Dump(epoch); got != cloned {
		t.Errorf("clone:\n%s", got)
	}
}

// An explorer may use all processors: clones share nothing that a command changes.
func TestClonesMayRunAtTheSameTime(t *testing.T) {
	s := fakeredis.New()
	s.Connect(nil).Do(epoch, "SET", "k", "0")
	var group sync.WaitGroup
	for range 4 {
		clone := s.Clone()
		group.Go(func() {
			c := clone.Connect(nil)
			for range 200 {
				c.Do(epoch, "EVAL", "redis.call('SET', 'k', redis.call('GET', 'k') + 1)", "0")
			}
			if got, _ := clone.Get(epoch, "k"); got != "200" {
				t.Errorf("200 additions made %q", got)
			}
		})
	}
	group.Wait()
}

func TestARestartForgetsScriptsAndListeners(t *testing.T) {
	for _, keep := range []bool{true, false} {
		s := fakeredis.New()
		var heard []fakeredis.Reply
		c, ear := s.Connect(nil), s.Connect(func(r fakeredis.Reply) { heard = append(heard, r) })
		c.Do(epoch, "SET", "k", "v")
		sha := c.Do(epoch, "SCRIPT", "LOAD", "return 1").Text()
		ear.Do(epoch, "SUBSCRIBE", "news")
		ear.Do(epoch, "PSUBSCRIBE", "*")
		s.Restart(keep)
		if _, there := s.Get(epoch, "k"); there != keep {
			t.Errorf("Restart(%v): the key is there: %v", keep, there)
		}
		if got := c.Do(epoch, "EVALSHA", sha, "0").Text(); got != fakeredis.ErrNoScript {
			t.Errorf("Restart(%v): the script answers %q", keep, got)
		}
		if got := c.Do(epoch, "PUBLISH", "news", "x").Int(); got != 0 || len(heard) > 0 {
			t.Errorf("Restart(%v): %d listeners", keep, got)
		}
		if got := ear.Do(epoch, "GET", "k"); got.IsError() {
			t.Errorf("Restart(%v): a listener still may only listen: %v", keep, got)
		}
	}
}

func TestAClosedClientHearsNothing(t *testing.T) {
	s := fakeredis.New()
	var heard []fakeredis.Reply
	c, ear := s.Connect(nil), s.Connect(func(r fakeredis.Reply) { heard = append(heard, r) })
	ear.Do(epoch, "SUBSCRIBE", "news", "sport")
	ear.Do(epoch, "PSUBSCRIBE", "n*", "*")
	if got := c.Do(epoch, "PUBLISH", "news", "x").Int(); got != 3 {
		t.Errorf("%d listeners, want 3", got)
	}
	want := `[["subscribe" "news" 1] ["psubscribe" "n*" 3] ["message" "news" "x"] ["pmessage" "n*" "news" "x"] ["pmessage" "*" "news" "x"]]`
	if got := fmt.Sprint(heard); got != want {
		t.Errorf("heard %s", got)
	}
	ear.Close()
	if got := c.Do(epoch, "PUBLISH", "news", "x").Int(); got != 0 {
		t.Errorf("%d listeners after the end of the only one", got)
	}
}

func TestACheckerSeesAndChangesDataWhateverTheFaults(t *testing.T) {
	s := fakeredis.New()
	s.Busy, s.Replica = true, true
	s.SetRaw("b", "x\n", time.Time{})
	s.SetRaw("a", "y", epoch.Add(5*time.Millisecond))
	s.SetRaw("c", "z", epoch.Add(-time.Millisecond))
	if got := s.Dump(epoch); got != "\"a\" 5 \"y\"\n\"b\" -1 \"x\\n\"\n" {
		t.Errorf("dump:\n%s", got)
	}
	if left, ok := s.Left(epoch, "a"); left != 5*time.Millisecond || !ok {
		t.Error(left, ok)
	}
	if _, ok := s.Get(epoch, "c"); ok {
		t.Error("an expired key can be read")
	}
	if !s.Delete("a") || s.Delete("a") || fmt.Sprint(s.Keys(epoch)) != "[b]" {
		t.Error(s.Keys(epoch))
	}
}

// Nothing of a script stays: no global, and no half of a failed one.
func TestScriptsDoNotMeetEachOther(t *testing.T) {
	c := fakeredis.New().Connect(nil)
	for _, text := range []string{"x = 1", "local function f() return f() end return f(1, g())", "KEYS[1] = 'mine'", "error({})", "return redis.call('NOSUCH')"} {
		c.Do(epoch, "EVAL", text, "1", "yours")
	}
	if got := c.Do(epoch, "EVAL", "return {KEYS[1], ARGV[1]}", "1", "k").String(); got != `["k"]` {
		t.Error(got)
	}
	if got := c.Do(epoch, "EVAL", "return x", "0"); !got.IsError() {
		t.Error(got)
	}
}

// A script without an end to its calls ends itself, and the next one runs.
func TestAScriptThatCallsItselfForEverFails(t *testing.T) {
	c := fakeredis.New().Connect(nil)
	if got := c.Do(epoch, "EVAL", "local function f() return 1 + f() end return f()", "0"); !got.IsError() {
		t.Error(got)
	}
	if got := c.Do(epoch, "EVAL", "return 1", "0").Int(); got != 1 {
		t.Error(got)
	}
}

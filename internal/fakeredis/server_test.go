package fakeredis

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"
)

var epoch = time.UnixMilli(1_700_000_000_000)

func TestACloneGoesItsOwnWay(t *testing.T) {
	s := New()
	c := s.Connect(nil)
	sha := c.Do(epoch, "SCRIPT", "LOAD", "return redis.call('GET', 'k')").Text()
	c.Do(epoch, "SET", "k", "1")
	c.Do(epoch, "LPUSH", "list", "a")
	s.Full = true
	clone := s.Clone()
	d := clone.Connect(nil)
	if got := d.Do(epoch, "SET", "k", "2").Text(); got != errFull {
		t.Errorf("the clone is not full: %q", got)
	}
	s.Full, clone.Full = false, false
	c.Do(epoch, "SCRIPT", "FLUSH")
	c.Do(epoch, "SET", "k", "3")
	c.Do(epoch, "LPUSH", "list", "b")
	c.Do(epoch, "SUBSCRIBE", "news")
	d.Do(epoch, "LPUSH", "list", "c")
	if got := d.Do(epoch, "EVALSHA", sha, "0").Text(); got != "1" {
		t.Errorf("after changes of the original the clone's script returns %q", got)
	}
	if got := d.Do(epoch, "PUBLISH", "news", "x").Int(); got != 0 {
		t.Errorf("the clone has %d of the original's listeners", got)
	}
	const original, cloned = "\"k\" -1 \"3\"\n\"list\" -1 [\"b\" \"a\"]\n", "\"k\" -1 \"1\"\n\"list\" -1 [\"c\" \"a\"]\n"
	if got := s.Dump(epoch) + clone.Dump(epoch); got != original+cloned {
		t.Errorf("original and clone:\n%s", got)
	}
}

func TestARestartForgetsScriptsAndListeners(t *testing.T) {
	for _, keep := range []bool{true, false} {
		s := New()
		var heard []Reply
		c, ear := s.Connect(nil), s.Connect(func(r Reply) { heard = append(heard, r) })
		c.Do(epoch, "SET", "k", "v")
		sha := c.Do(epoch, "SCRIPT", "LOAD", "return 1").Text()
		ear.Do(epoch, "SUBSCRIBE", "news")
		ear.Do(epoch, "PSUBSCRIBE", "*")
		s.Restart(keep)
		if _, there := s.Get(epoch, "k"); there != keep {
			t.Errorf("Restart(%v): the key exists: %v", keep, there)
		}
		if got := c.Do(epoch, "EVALSHA", sha, "0").Text(); got != errNoScript {
			t.Errorf("Restart(%v): the script returns %q", keep, got)
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
	s := New()
	c, ear := s.Connect(nil), s.Connect(func(Reply) {})
	ear.Do(epoch, "SUBSCRIBE", "news", "sport")
	ear.Do(epoch, "PSUBSCRIBE", "n*", "*")
	for _, want := range []int64{3, 0} {
		if got := c.Do(epoch, "PUBLISH", "news", "x").Int(); got != want {
			t.Errorf("%d listeners, want %d", got, want)
		}
		ear.Close()
	}
}

func TestAKeyStaysForTheLastMillisecondOfItsTime(t *testing.T) {
	c := New().Connect(nil)
	c.Do(epoch, "SET", "k", "v", "PX", "10")
	for _, step := range []struct {
		after time.Duration
		want  int64
	}{
		{9 * time.Millisecond, 1},
		{11*time.Millisecond - 1, 0},
		{11 * time.Millisecond, -2},
		{0, -2}, // a clock that is set back revives no key
	} {
		if got := c.Do(epoch.Add(step.after), "PTTL", "k").Int(); got != step.want {
			t.Errorf("PTTL after %v: %d, want %d", step.after, got, step.want)
		}
	}
}

func TestReadCommand(t *testing.T) {
	long := strings.Repeat("x", 10_000)
	r := bufio.NewReader(strings.NewReader("*2\r\n$3\r\nGET\r\n$4\r\na\r\nb\r\n*1\r\n$10000\r\n" + long + "\r\n*0\r\n"))
	for _, want := range []string{`["GET" "a\r\nb"]`, fmt.Sprintf("[%q]", long), "[]"} {
		if got, err := ReadCommand(r); fmt.Sprintf("%q", got) != want || err != nil {
			t.Errorf("%.40q %v", got, err)
		}
	}
	if _, err := ReadCommand(r); err != io.EOF {
		t.Error("at the end:", err)
	}
	for input, want := range map[string]error{"*1\r\n$3\r\nGE": io.ErrUnexpectedEOF, "GET k\r\n": ErrProtocol, "*65537\r\n": ErrProtocol} {
		if got, err := ReadCommand(bufio.NewReader(strings.NewReader(input))); got != nil || !errors.Is(err, want) {
			t.Errorf("%q: %q, %v", input, got, err)
		}
	}
}

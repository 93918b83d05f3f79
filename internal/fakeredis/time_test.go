package fakeredis_test

import (
	"strconv"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/fakeredis"
)

func TestAKeyStaysForTheLastMillisecondOfItsTime(t *testing.T) {
	c := fakeredis.New().Connect(nil)
	c.Do(epoch, "SET", "k", "v", "PX", "10")
	for _, step := range []struct {
		after time.Duration
		want  int64
	}{
		{9 * time.Millisecond, 1},
		{11*time.Millisecond - 1, 0},
		{11 * time.Millisecond, -2},
		{0, -2}, // a clock that is set back revives nothing
	} {
		if got := c.Do(epoch.Add(step.after), "PTTL", "k").Int(); got != step.want {
			t.Errorf("PTTL after %v: %d, want %d", step.after, got, step.want)
		}
	}
}

func TestAnExpireOfNoTimeDeletesAtOnce(t *testing.T) {
	for _, ms := range []string{"0", "-1"} {
		c := fakeredis.New().Connect(nil)
		c.Do(epoch, "SET", "k", "v")
		if got := c.Do(epoch, "PEXPIRE", "k", ms); got.Int() != 1 {
			t.Errorf("PEXPIRE %s: %v", ms, got)
		}
		if got := c.Do(epoch, "EXISTS", "k"); got.Int() != 0 {
			t.Errorf("after PEXPIRE %s the key exists", ms)
		}
	}
}

// What nobody asks for must not stay in memory for ever.
func TestExpiredKeysAreForgotten(t *testing.T) {
	s := fakeredis.New()
	c := s.Connect(nil)
	for i := range 20_000 {
		c.Do(epoch.Add(time.Duration(i)*time.Millisecond), "SET", strconv.Itoa(i), "v", "PX", "100")
	}
	if s.Stored() > 5_000 {
		t.Errorf("%d keys are kept, of which 101 are there", s.Stored())
	}
}

// Keys whose time ends are compared after the end, since near it the clocks disagree.
func TestKeysExpireAsOnARealRedis(t *testing.T) {
	p := newPair(t)
	l := p.connect()
	for i := range 20 {
		k := strconv.Itoa(i)
		l.do("SET", "px"+k, "v", "PX", strconv.Itoa(1+i))
		l.do("SET", "keep"+k, "v", "PX", strconv.Itoa(15+i))
		l.do("SET", "keep"+k, "w", "KEEPTTL")
		l.do("SET", "forever"+k, "v", "PX", strconv.Itoa(15+i))
		l.do("SET", "forever"+k, "w")
		l.do("SET", "old"+k, "v", "PX", strconv.Itoa(15+i))
		l.do("RENAME", "old"+k, "new"+k)
		l.do("SET", "longer"+k, "v", "PX", strconv.Itoa(15+i))
		l.do("PEXPIRE", "longer"+k, strconv.Itoa(longest))
		l.do("SET", "saved"+k, "v", "PX", strconv.Itoa(15+i))
		l.do("PERSIST", "saved"+k)
		l.do("SET", "got"+k, "v", "PX", strconv.Itoa(15+i))
		l.do("GETSET", "got"+k, "w")
		l.do("LPUSH", "list"+k, "v")
		l.do("PEXPIRE", "list"+k, strconv.Itoa(1+i))
	}
	l.do("SET", "last", "v", "PX", "50")
	for !l.ask([]string{"GET", "last"}).IsNil() {
	}
	p.sameData()
	if got := l.do("EXISTS", "px0", "keep0", "forever0", "new0", "longer0", "saved0", "got0", "list0"); got.Int() != 4 {
		t.Errorf("%v of the keys are left, want 4", got)
	}
}

func TestTimeIsThatOfTheCommand(t *testing.T) {
	now := epoch.Add(1234567 * time.Microsecond)
	c := fakeredis.New().Connect(nil)
	if got := c.Do(now, "TIME").String(); got != `["1700000001" "234567"]` {
		t.Error(got)
	}
	if got := c.Do(now, "EVAL", "return redis.call('TIME')", "0").String(); got != `["1700000001" "234567"]` {
		t.Error("in a script:", got)
	}
}

// The lock of timestamps asks Redis for the time if it is told none.
func TestTheTimestampLockGetsItsTimeFromTheServer(t *testing.T) {
	c := fakeredis.New().Connect(nil)
	text := framed(t, "locker/timestamp.lua")
	if got := c.Do(epoch, "EVAL", text, "2", "k", "n", "take", "T1", "5000", "", "7").String(); got != "[1 7]" {
		t.Fatal(got)
	}
	if got, _ := c.Server().Get(epoch, "k"); got != "1700000005000" {
		t.Error(got)
	}
	if got := c.Do(epoch.Add(time.Second), "EVAL", text, "2", "k", "n", "take", "T2", "5000", "", "8").String(); got != `[0 "T1" 4001 8]` {
		t.Error(got)
	}
}

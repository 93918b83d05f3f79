package fakeredis_test

import (
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/fakeredis"
)

var epoch = time.UnixMilli(1_700_000_000_000)

const (
	stamp  = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	record = `{"v":2,"s":"` + stamp + `","c":1700000000000,"d":{"user":"u1","n":7}}`
)

// fixture returns a client of a server with a record, and the hashes of take and commit.
func fixture(tb testing.TB) (c *fakeredis.Client, take, commit string) {
	tb.Helper()
	c = fakeredis.New().Connect(nil)
	c.Do(epoch, "SET", "r", record)
	take = c.Do(epoch, "SCRIPT", "LOAD", framed(tb, "store/take.lua")).Text()
	commit = c.Do(epoch, "SCRIPT", "LOAD", framed(tb, "store/commit.lua")).Text()
	return c, take, commit
}

// A take and a commit are what an exclusive request costs.
func BenchmarkTakeCommit(b *testing.B) {
	c, take, commit := fixture(b)
	b.ReportAllocs()
	for b.Loop() {
		taken := c.Do(epoch, "EVALSHA", take, "3", "r", "l", "q", "token", "10000", "100000", "1600000000000", "latchkey:wake:x/1", "1800000", "41")
		done := c.Do(epoch, "EVALSHA", commit, "3", "r", "l", "q", "token", stamp, "1800000", record, "42")
		if len(taken.List()) != 4 || done.Int() != 42*4+1 {
			b.Fatal(taken, done)
		}
	}
}

// A take that finds the lock held is what a wait costs.
func BenchmarkTakeHeld(b *testing.B) {
	c, take, _ := fixture(b)
	c.Do(epoch, "SET", "l", "other", "PX", "10000")
	b.ReportAllocs()
	for b.Loop() {
		if r := c.Do(epoch, "EVALSHA", take, "3", "r", "l", "q", "token", "10000", "100000", "1600000000000", "latchkey:wake:x/1", "1800000", "41"); len(r.List()) != 5 {
			b.Fatal(r)
		}
	}
}

// A model explorer clones before each step.
func BenchmarkCloneTakeDump(b *testing.B) {
	c, take, _ := fixture(b)
	c.Do(epoch, "SET", "l", "other", "PX", "10000")
	c.Do(epoch, "SET", "q", "latchkey:wake:x/1 ", "PX", "10000")
	var dump []byte
	b.ReportAllocs()
	for b.Loop() {
		s := c.Server().Clone()
		s.Connect(nil).Do(epoch, "EVALSHA", take, "3", "r", "l", "q", "token", "10000", "100000", "1600000000000", "", "1800000", "41")
		dump = s.AppendDump(dump[:0], epoch)
	}
	if len(dump) == 0 {
		b.Fatal("nothing was dumped")
	}
}

package faults

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/redistest"
)

// A wireCommand is a kind of command that may be lost alone: Redis executes other commands before and after it.
type wireCommand struct {
	what string
	is   func(redistest.Command) bool
}

// wireCommands are all takes and all commits, and the commands of a take without a script, of a read without a
// script, and of the commit of a large record.
var wireCommands = []wireCommand{
	{"a take", isTake},
	{"a commit", isCommit},
	{"the SET of a lock", isLocking},
	{"the MGET of a take", isLooking},
	{"the SET of a large record", isStaging},
	{"the RENAME of a large record", isRenaming},
	{"the PEXPIRE or GET of a read", isReading},
}

// One command in ten is lost, or its reply, or half of the reply. Commands sent with it are lost, too, or were
// done before. There is at most one loss in 10 ms. A round trip that shares its connection with the losses is
// repeated twice, and fails if the third try breaks as well.
func TestWireCommandLost(t *testing.T) {
	for _, kind := range wireCommands {
		t.Run(kind.what, func(t *testing.T) {
			s := stage(t, "one in ten is lost: "+kind.what+", or its reply, or half of that", "P1: nothing lost; not noticed", setting{demos: 1, lease: patient})
			s.close(s.demos[0]) // so that only one process writes
			p := s.proxied()
			all := newUsers(t, 4, s.sites.Any)
			n := 0
			var lost atomic.Int64
			var last time.Time
			s.run(func(ctx context.Context) {
				p.Inject(func(c redistest.Command) redistest.Fault {
					if !kind.is(c) {
						return redistest.Pass
					}
					if n++; n%10 != 0 || time.Since(last) < 10*time.Millisecond {
						return redistest.Pass
					}
					last = time.Now()
					return []redistest.Fault{redistest.DropCommand, redistest.DropReply, redistest.CutReply}[lost.Add(1)%3]
				})
				workUntil(ctx, all, unlessShort(2*time.Second, time.Second), func() bool { return lost.Load() >= 6 })
				happened(t, "a command was lost", int(lost.Load()), 6)
				p.Inject(nil)
			})
			sum := lastLook(t, all)
			if s.seen = fmt.Sprintf("%d lost; users: %v", lost.Load(), sum); sum.silent > 0 {
				t.Errorf("%d requests of users were not answered", sum.silent)
			}
			s.allAnswered()
		})
	}
}

package records

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/locker/transport"
)

// losses are what others may do to a held session, and what its holder then learns.
var losses = map[string]struct {
	lose func(t *testing.T, s *redistest.Server)
	why  string
}{
	"the lock is taken": {func(t *testing.T, s *redistest.Server) {
		s.Do(t, "DEL", theLock)
		if _, _, err := process(t, s).Take(t.Context(), theID, Terms{Label: "POST /order"}); err != nil {
			t.Fatal(err)
		}
	}, " POST /order has it now"},
	"the lock is empty":   {func(t *testing.T, s *redistest.Server) { s.Do(t, "SET", theLock, "", "PX", 60_000) }, "its key has been overwritten"},
	"the lock is deleted": {func(t *testing.T, s *redistest.Server) { s.Do(t, "DEL", theLock) }, "its key is gone: deleted, evicted"},
	"the record is written": {func(t *testing.T, s *redistest.Server) {
		s.Do(t, "SET", theRecord, formatRecord(theRevision, time.Now(), []byte("2")))
	}, "another request has changed the session"},
	"the session is ended": {func(t *testing.T, s *redistest.Server) {
		s.Do(t, "SET", theRecord, formatTombstone(theRevision, time.Now(), nil))
	}, "another request has ended the session"},
	"the record is deleted": {func(t *testing.T, s *redistest.Server) { s.Do(t, "DEL", theRecord) }, "the session's record is gone"},
	"the record is no longer a string": {func(t *testing.T, s *redistest.Server) {
		s.Do(t, "DEL", theRecord)
		s.Do(t, "LPUSH", theRecord, "x")
	}, "another request has changed the session"},
}

// wantLoss checks that err is an ErrLost alone, and says why.
func wantLoss(t *testing.T, err error, why string) {
	t.Helper()
	wantError(t, "the error", err, ErrLost)
	if errors.Is(err, ErrUnavailable) {
		t.Errorf("%v: it is certain that nothing was stored", err)
	}
	wantMessage(t, err, []string{why})
}

// P7: the context of a request that has lost its session says why: what the renewal finds, by half of the lease.
// If only the record was lost, the lock is free soon after that.
func TestTheCauseOfALostSessionSaysWhy(t *testing.T) {
	t.Parallel()
	for name, loss := range losses {
		t.Run(name, fakeTime(func(t *testing.T, s *redistest.Server) {
			st := onPool(s.Pool(t, 8), Options{Lease: 10 * time.Second, Timeout: patient.Timeout})
			create(t, st, "1")
			h := take(t, st)
			token, _ := s.Get(t, theLock)
			lost := lossOf(t, h)
			loss.lose(t, s)
			lapse(5 * time.Second)
			wantError(t, "the context", lost.Err(), context.Canceled)
			wantLoss(t, context.Cause(lost), loss.why)
			if holder, _ := s.Get(t, theLock); holder == token {
				t.Error("the lock still has the lost hold's token")
			}
			wantLoss(t, h.Save(t.Context(), []byte("3")), loss.why)
		}))
	}
}

// A request may ask to be told of a loss only after the loss. It is told at once.
func TestALossIsToldToWhoAsksLater(t *testing.T) {
	inFakeTime(t, func(t *testing.T, s *redistest.Server) {
		st := process(t, s)
		create(t, st, "1")
		h := take(t, st)
		s.Do(t, "DEL", theLock)
		lapse(patient.Lease / 2) // the renewal has found it
		wantLoss(t, context.Cause(lossOf(t, h)), "its key is gone")
		h.Release(t.Context())
	})
}

// Text from outside makes no error long, or longer than a line.
func TestErrorsAreShort(t *testing.T) {
	inFakeTime(t, func(t *testing.T, s *redistest.Server) {
		const junk = "x\n\x1b[2J"
		st, long := process(t, s), strings.Repeat(junk, 100)
		want := func(what string, err, kind error) {
			t.Helper()
			wantError(t, what, err, kind)
			if text := fmt.Sprint(err); len(text) > 500 || strings.ContainsAny(text, "\n\x1b") {
				t.Errorf("%s: %q", what, text)
			}
		}
		_, _, err := st.Take(t.Context(), long, Terms{})
		want("Take", err, ErrNotFound)
		_, err = st.Load(t.Context(), long, Terms{})
		want("Load", err, ErrNotFound)
		want("End", st.End(t.Context(), long), ErrNotFound)
		create(t, st, "0")
		now := fmt.Sprint(time.Now().UnixMilli())
		s.Do(t, "SET", theLock, "ABCDEFGHIJKLMNOP "+now+" "+strings.Repeat(junk, 100)+"/1 "+long, "PX", 60_000)
		_, _, err = st.Take(t.Context(), theID, Terms{LockWait: time.Millisecond})
		want("Take of a session with a strange lock", err, ErrTimeout)
		prefixed := onPool(s.Pool(t, 1), Options{Prefix: "{" + long})
		want("Err", prefixed.Err(), prefixed.Err())
	})
}

// A hold is lost while the commit of the hold before it is under way. The earlier hold ended in time, so its
// version is stored, and its Save succeeds. The commit has given the lock to the lost hold, but the lock is free
// soon.
func TestAHoldIsLostWhileAnotherCommits(t *testing.T) {
	eachDesk(t, patient, func(t *testing.T, d *desk) {
		first := take(t, d.st)
		waiting := guests(t, d.st, 1, Terms{MaxHold: time.Second})
		letGo := d.holdBack(t)
		one := saving(t, first, "1")
		second := waiting[0].holds(t, "1")
		toldLost(t, second)
		two := saving(t, second, "2")
		letGo()
		wantError(t, "the one that was lost", two.wait(), ErrLost)
		wantError(t, "the one that was in time", one.wait(), nil)
		begun := time.Now()
		d.wantQuiet(t, "1")
		if took := time.Since(begun); took > 500*time.Millisecond { // the commit has given it for a second
			t.Errorf("the lock is free after %v", took)
		}
	})
}

// A lateClient delays the reply to one script until late is closed, and then returns an error instead.
type lateClient struct {
	*transport.Redigo
	next atomic.Bool // the next script is that one
	late chan struct{}
}

func (c *lateClient) Do(ctx context.Context, key string, commands ...transport.Command) ([]any, error) {
	replies, err := c.Redigo.Do(ctx, key, commands...)
	if commands[len(commands)-1][0] == "EVALSHA" && c.next.CompareAndSwap(true, false) {
		<-c.late
		return nil, fmt.Errorf("%w: the connection broke", ErrUnavailable)
	}
	return replies, err
}

// A commit is done, but its reply is lost so late that the lease of the next hold has expired and another process
// has the session. The repetition is refused. The error says that the commit may be stored, and it is.
func TestACommitMayBeStoredThatOutlastsItsLease(t *testing.T) {
	inFakeTime(t, func(t *testing.T, s *redistest.Server) {
		learn(t, s)
		create(t, process(t, s), "0")
		c := &lateClient{Redigo: transport.NewRedigo(s.Pool(t, 1), patient.Timeout), late: make(chan struct{})}
		st := New(c, Options{Lease: patient.Timeout / 4, Timeout: patient.Timeout})
		st.maxUnheard = time.Hour
		first, waiting := take(t, st), guests(t, st, 1, Terms{})
		c.next.Store(true)
		one := saving(t, first, "1")
		toldLost(t, waiting[0].holds(t, "1"))
		other := take(t, process(t, s))
		if got := string(other.Record.Data); got != "1" {
			t.Errorf("another process has found %q", got)
		}
		must(t, other.Save(t.Context(), []byte("2")))
		close(c.late)
		err := one.wait()
		wantError(t, "the commit", err, ErrLost)
		wantError(t, "the commit", err, ErrUnavailable)
	})
}

// A hold that is used after its end changes nothing. The error says that the hold has ended, not that the lock
// was lost.
func TestAHoldIsGivenBackOnce(t *testing.T) {
	eachDesk(t, patient, func(t *testing.T, d *desk) {
		first := take(t, d.st)
		waiting := guests(t, d.st, 2, Terms{})
		save(t, first, "1")
		second := waiting[0].holds(t, "1")
		wantLoss(t, first.Save(t.Context(), []byte("again")), "it was released before")
		wantError(t, "Destroy", first.Destroy(t.Context()), ErrLost)
		first.Release(t.Context())
		synctest.Wait()
		select {
		case <-waiting[1].came:
			t.Error("the session was passed on while the second hold had it")
		default:
		}
		must(t, second.Touch(t.Context()))
		save(t, waiting[1].holds(t, "1"), "2")
		d.wantQuiet(t, "2")
	})
}

// The process was paused for longer than a lease, and its first step afterwards is a save. The error says so: the key
// that is gone from Redis would lead to the wrong suspicion.
func TestASaveAfterAPauseSaysSo(t *testing.T) {
	inFakeTime(t, func(t *testing.T, s *redistest.Server) {
		st := process(t, s)
		create(t, st, "0")
		h := takeBy(t, st, Terms{MaxHold: time.Hour})
		st.lines.CancelAlarm(&h.tenure.alarm) // in a pause no alarm rings
		lapse(2 * patient.Lease)
		wantLoss(t, h.Save(t.Context(), []byte("1")), "was it paused?")
		wantData(t, s, "0")
		wantFree(t, s)
	})
}

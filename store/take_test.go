package store

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/locker"
	"github.com/a2139e8d/latchkey/locker/transport"
)

// between does something on Redis after the SET of a first try, and before its MGET.
func between(t *testing.T, p *redistest.Proxy, do func()) {
	t.Helper()
	done := false
	p.Inject(func(cmd redistest.Command) redistest.Fault {
		if readsBoth(cmd) && !done {
			done = true
			do()
		}
		return redistest.Pass
	})
	t.Cleanup(func() {
		if !done {
			t.Error("there was no MGET")
		}
	})
}

// That SET was done says nothing: the lock may be gone again when the record is read, or
// another's.
func TestOnlyTheReaderOfTheRecordKnowsWhoHasTheLock(t *testing.T) {
	inFakeTime(t, func(t *testing.T, s *redistest.Server) {
		st, p := tapped(t, s, patient)
		other := process(t, s)
		create(t, st, "0")

		between(t, p, func() { s.Do(t, "DEL", theLock) })
		h := take(t, st)
		if holder, _ := s.Get(t, theLock); !strings.HasPrefix(holder, h.stamp) {
			t.Errorf("the lock has %q, and the hold the stamp %s", holder, h.stamp)
		}
		save(t, h, "1")

		var others *Hold
		between(t, p, func() {
			s.Do(t, "DEL", theLock)
			others = take(t, other)
		})
		_, err := st.Take(t.Context(), theID, Terms{LockWait: locker.NoWait})
		wantError(t, "Take", err, ErrTimeout)
		save(t, others, "2")
		wantData(t, s, "2")

		s.Do(t, "SET", theLock, "", "PX", time.Hour.Milliseconds()) // which is somebody's, too
		_, err = st.Take(t.Context(), theID, Terms{LockWait: locker.NoWait})
		wantError(t, "Take of a lock without a value", err, ErrTimeout)
	})
}

// What is not as usual goes to the script, which has the last word: about the record, and about
// the lock that SET has taken.
func TestATakeOfWhatIsNotAsUsual(t *testing.T) {
	inFakeTime(t, func(t *testing.T, s *redistest.Server) {
		hour := time.Hour.Milliseconds()
		young := func(data string) []byte { return formatRecord("ABCDEFGHIJKLMNOP", time.Now(), []byte(data)) }
		for name, tt := range map[string]struct {
			command []any
			want    error
			free    bool
		}{
			"nothing":               {nil, ErrNotFound, true},
			"a tombstone":           {[]any{"SET", theRecord, formatTombstone("ABCDEFGHIJKLMNOP", time.Now()), "PX", hour}, ErrGone, true},
			"beyond its lifetime":   {[]any{"SET", theRecord, formatRecord("ABCDEFGHIJKLMNOP", time.Now().Add(-48*time.Hour), []byte("1")), "PX", hour}, ErrNotFound, true},
			"about to time out":     {[]any{"SET", theRecord, young("1"), "PX", time.Minute.Milliseconds()}, nil, false},
			"without a timeout":     {[]any{"SET", theRecord, young("1")}, nil, false}, // nobody's but a person's
			"too large":             {[]any{"SET", theRecord, young(strings.Repeat("1", 1000)), "PX", hour}, ErrTooLarge, false},
			"garbage":               {[]any{"SET", theRecord, "garbage", "PX", hour}, ErrCorrupt, false},
			"another type of Redis": {[]any{"LPUSH", theRecord, "1"}, ErrCorrupt, false},
		} {
			s.Do(t, "FLUSHALL")
			if tt.command != nil {
				s.Do(t, tt.command[0].(string), tt.command[1:]...)
			}
			h, err := process(t, s).Take(t.Context(), theID, Terms{MaxBytes: 500})
			wantError(t, name, err, tt.want)
			if s.Exists(t, theLock) == tt.free {
				t.Errorf("%s: the lock is free: %v, want %v", name, !tt.free, tt.free)
			}
			if (h == nil) != tt.free {
				t.Errorf("%s: the hold is %v", name, h)
			}
			if name == "about to time out" && expiry(t, s, theRecord) <= expiry(t, s, theLock) {
				t.Errorf("%s: it does not outlast the lock", name)
			}
			if h != nil {
				h.Release(t.Context())
			}
		}
	})
}

// A session whose idle timeout is not longer than a lease would never outlast its lock by itself. So
// its take is not tried in vain.
func TestATakeWithAShortTimeoutIsOneRoundTrip(t *testing.T) {
	inFakeTime(t, func(t *testing.T, s *redistest.Server) {
		learn(t, s)
		st, p := tapped(t, s, patient)
		for _, ttl := range []time.Duration{patient.Lease, 2 * patient.Lease} {
			terms := Terms{TTL: ttl, Lifetime: time.Hour}
			must(t, st.Create(t.Context(), theID, []byte("1"), terms))
			p.Forget()
			h, err := st.Take(t.Context(), theID, terms)
			if n := p.RoundTrips(); n != 1 || err != nil {
				t.Fatalf("TTL %v: %d round trips, %v", ttl, n, err)
			}
			h.Release(t.Context())
			s.Do(t, "DEL", theRecord)
		}
	})
}

// Not even a Redis whose replies are those of another exchange can make a lock look held that is
// not: SET says otherwise.
func TestALockIsNotHeldByWhoHasAnother(t *testing.T) {
	inFakeTime(t, func(t *testing.T, s *redistest.Server) {
		c := &lying{Client: transport.NewRedigo(s.Pool(t, 2), patient.Timeout)}
		st := NewOn(c, patient)
		first := ownHold(t, st, theID)
		last := c.last
		must(t, st.Create(t.Context(), newID, []byte("1"), Terms{}))
		c.lie = last
		takeID(t, st, newID).Release(t.Context())
		first.Release(t.Context())
	})
}

// A lying client gives an exchange other replies, where it has some.
type lying struct {
	transport.Client
	lie, last []any
}

func (c *lying) Do(ctx context.Context, key string, commands ...transport.Command) ([]any, error) {
	replies, err := c.Client.Do(ctx, key, commands...)
	if lie := c.lie; lie != nil {
		c.lie = nil
		return lie, err
	}
	c.last = replies
	return replies, err
}

package records

import (
	"reflect"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/locker"
)

// between calls do after the SET of a first try, and before its MGET.
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

// A successful SET proves nothing: when the record is read, the lock may be free again, or belong to another
// holder.
func TestOnlyTheReaderOfTheRecordKnowsWhoHasTheLock(t *testing.T) {
	inFakeTime(t, func(t *testing.T, s *redistest.Server) {
		st, p := tapped(t, s, patient)
		other := process(t, s)
		create(t, st, "0")

		between(t, p, func() { s.Do(t, "DEL", theLock) })
		h := take(t, st)
		if holder, _ := s.Get(t, theLock); holder != tokenOf(h) {
			t.Errorf("the lock has %q, and the hold the token %s", holder, tokenOf(h))
		}
		save(t, h, "1")

		var others *Hold
		between(t, p, func() {
			s.Do(t, "DEL", theLock)
			others = take(t, other)
		})
		_, _, err := st.Take(t.Context(), theID, Terms{LockWait: locker.NoWait})
		wantError(t, "Take", err, ErrTimeout)
		save(t, others, "2")
		wantData(t, s, "2")

		s.Do(t, "SET", theLock, "", "PX", time.Hour.Milliseconds()) // a value that is no token also means that the lock is held
		_, _, err = st.Take(t.Context(), theID, Terms{LockWait: locker.NoWait})
		wantError(t, "Take of a lock without a value", err, ErrTimeout)
	})
}

// In unusual cases the script decides: about the record, and about the lock that SET has acquired.
func TestATakeOfWhatIsNotAsUsual(t *testing.T) {
	inFakeTime(t, func(t *testing.T, s *redistest.Server) {
		hour := time.Hour.Milliseconds()
		young := func(data string) []byte { return formatRecord(theRevision, time.Now(), []byte(data)) }
		for name, tt := range map[string]struct {
			command []any
			want    error
			free    bool
		}{
			"nothing":             {nil, ErrNotFound, true},
			"a tombstone":         {[]any{"SET", theRecord, formatTombstone(theRevision, time.Now(), nil), "PX", hour}, ErrGone, true},
			"beyond its lifetime": {[]any{"SET", theRecord, formatRecord(theRevision, time.Now().Add(-48*time.Hour), []byte("1")), "PX", hour}, ErrNotFound, true},
			"about to time out":   {[]any{"SET", theRecord, young("1"), "PX", time.Minute.Milliseconds()}, nil, false},
			"without a timeout":   {[]any{"SET", theRecord, young("1")}, nil, false}, // only a person writes such a record
		} {
			s.Do(t, "FLUSHALL")
			if tt.command != nil {
				s.Do(t, tt.command[0].(string), tt.command[1:]...)
			}
			h, _, err := process(t, s).Take(t.Context(), theID, Terms{})
			wantError(t, name, err, tt.want)
			if s.Exists(t, theLock) == tt.free {
				t.Errorf("%s: the lock is free: %v, want %v", name, !tt.free, tt.free)
			}
			if (h == nil) != tt.free {
				t.Errorf("%s: the hold is %v", name, h)
			}
			if name == "about to time out" && expiry(t, s, theRecord) <= expiry(t, s, theLock) {
				t.Errorf("%s: the record does not outlast the lock", name)
			}
			if h != nil {
				h.Release(t.Context())
			}
		}
	})
}

// Each request allocates a visit. Go has sizes of 896 and 1,024 bytes for it, 8 of them for itself, and the larger one
// takes 2 µs more, of a request's 100.
func TestAVisitHasTheSmallerSize(t *testing.T) {
	if size := reflect.TypeFor[visit]().Size(); size > 896-8 {
		t.Errorf("a visit has %d bytes", size)
	}
}

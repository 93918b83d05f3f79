package records

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/redistest"
)

// A request with an ID that Renew has moved learns the new ID, within a minute. An ID that was ended otherwise
// leads nowhere.
func TestAMovedIDNamesItsSuccessor(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]Options{"plain": patient, "sealed": encrypted(newKey, oldKey)} {
		t.Run(name, fakeTime(func(t *testing.T, s *redistest.Server) {
			st := onPool(s.Pool(t, 8), o)
			moves := func(want string) {
				t.Helper()
				_, _, taken := st.Take(t.Context(), theID, Terms{})
				_, loaded := st.Load(t.Context(), theID, Terms{})
				for what, err := range map[string]error{"Take": taken, "Load": loaded} {
					wantError(t, what, err, ErrGone)
					var moved *Moved
					if errors.As(err, &moved) != (want != "") || moved != nil && moved.To != want {
						t.Errorf("%s: the error names %+v; want %q", what, moved, want)
					}
				}
			}
			create(t, st, "1")
			must(t, take(t, st).Renew(t.Context(), newID, []byte("2")))
			moves(newID)
			text, _ := s.Get(t, theRecord)
			if sealed := name == "sealed"; strings.Contains(text, newID) == sealed {
				t.Errorf("the tombstone is %s", text)
			}
			// A process with other keys does not know it. A successor that was not sealed may be an intruder's.
			stranger := onPool(s.Pool(t, 8), encrypted(oldKey))
			_, lost := stranger.Load(t.Context(), theID, Terms{})
			wantMessage(t, lost, []string{"another ID"})
			var moved *Moved
			if !errors.As(lost, &moved) || moved.To != "" {
				t.Errorf("without the key the error is %v, with %+v", lost, moved)
			}
			lapse(time.Minute + time.Millisecond)
			_, _, err := st.Take(t.Context(), theID, Terms{})
			wantError(t, "Take after a minute", err, ErrNotFound)
			create(t, st, "3")
			must(t, st.End(t.Context(), theID))
			moves("")
		}))
	}
}

// An ID that has moved leads to its successor for a minute, even if its tombstone lives longer: a plain read has
// extended the tombstone, and the request may end before that is undone.
func TestATombstoneThatOutlivesItsMinuteLeadsNowhere(t *testing.T) {
	inFakeTime(t, func(t *testing.T, s *redistest.Server) {
		learn(t, s)
		st, p := tapped(t, s, patient)
		create(t, st, "1")
		must(t, take(t, st).Renew(t.Context(), newID, []byte("2")))
		p.Inject(func(cmd redistest.Command) redistest.Fault {
			if runs(cmd, loadScript) {
				return redistest.DropCommand
			}
			return redistest.Pass
		})
		terms := Terms{TTL: time.Hour, Lifetime: 10 * time.Hour}
		if _, err := st.Load(t.Context(), theID, terms); errors.Is(err, ErrGone) {
			t.Fatal("the script was done")
		}
		p.Inject(nil)
		lapse(time.Minute + 2*time.Second)
		_, err := st.Load(t.Context(), theID, terms)
		wantError(t, "Load after a minute", err, ErrGone)
		if _, moved := errors.AsType[*Moved](err); moved {
			t.Error("the ID still has a successor")
		}
	})
}

// A tombstone with at most a minute left names the successor, whatever its time. With more left, its time
// decides.
func TestWhatATombstoneSaysAsTimePasses(t *testing.T) {
	t.Parallel()
	now := time.Now()
	for _, c := range []struct {
		ago, left time.Duration
		moved     bool
	}{
		{time.Second, tombstoneTime, true},
		{time.Hour, tombstoneTime, true}, // Redis's clock was set
		{time.Second, time.Hour, true},   // another process has just read it
		{time.Hour, time.Hour, false},    // the extension by a read was never undone
	} {
		tombstone := formatTombstone("ABCDEFGHIJKLMNOP", now.Add(-c.ago), nameSuccessor(nil, newID))
		if _, moved := errors.AsType[*Moved](whyGone(tombstone, c.left, nil, now)); moved != c.moved {
			t.Errorf("%v ago, with %v left: moved is %v", c.ago, c.left, moved)
		}
	}
}

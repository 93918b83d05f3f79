package records

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// A hold that follows another keeps the rules that scripts keep when they read a record.
func TestJoinedHoldKeepsItsTerms(t *testing.T) {
	long := strings.Repeat("x", 100)
	t.Run("MaxBytes", atDesk(patient, func(t *testing.T, d *desk) {
		first := take(t, d.st)
		waiting := append(guests(t, d.st, 1, Terms{MaxBytes: 100}), guests(t, d.st, 1, Terms{})...)
		save(t, first, long)
		<-waiting[0].came
		wantError(t, "Take", waiting[0].err, ErrTooLarge)
		small := waiting[0].hold
		if small == nil || small.Record.Data != nil {
			t.Fatalf("the hold is %+v", small)
		}
		small.Release(t.Context()) // it does not replace the record
		save(t, waiting[1].holds(t, long), "1")
		d.wantQuiet(t, "1")
	}))
	t.Run("Lifetime", atDesk(patient, func(t *testing.T, d *desk) {
		old := formatRecord(theRevision, time.Now().Add(-time.Hour), []byte("1"))
		d.Do(t, "SET", theRecord, old, "PX", 60_000)
		first := take(t, d.st)
		waiting := guests(t, d.st, 1, Terms{TTL: time.Minute, Lifetime: time.Hour})
		save(t, first, "2")
		<-waiting[0].came
		wantError(t, "Take", waiting[0].err, ErrNotFound)
		if !strings.Contains(waiting[0].err.Error(), theID) {
			t.Errorf("the error does not name the session: %v", waiting[0].err)
		}
		d.wantQuiet(t, "2")
	}))
}

// A countedContent is a Content that counts how often it is encoded.
type countedContent struct {
	text    string
	encoded int
}

func (c *countedContent) Size() int { return len(c.text) }

func (c *countedContent) AppendTo(b []byte) []byte {
	c.encoded++
	return append(b, c.text...)
}

// A Content is passed on unencoded, and encoded when it is sent. A Content that is replaced by another version
// before is never encoded.
func TestAContentIsEncodedWhenItIsSent(t *testing.T) {
	o := encrypted(newKey)
	o.Encryption.AcceptPlain = true // a desk begins with a plain record
	eachDesk(t, o, func(t *testing.T, d *desk) {
		versions := []*countedContent{{text: "1"}, {text: "22"}, {text: "333"}, {text: "4444"}}
		h := take(t, d.st)
		waiting := guests(t, d.st, len(versions)-1, Terms{})
		letGo := d.holdBack(t)
		var endings []*ending
		for i, version := range versions {
			if i > 0 {
				h = waiting[i-1].holds(t, "")
				if h.Record.Content != versions[i-1] {
					t.Errorf("hold %d has the Content %v", i, h.Record.Content)
				}
			}
			saver := h
			endings = append(endings, begin(func() error { return saver.SaveContent(t.Context(), version) }))
		}
		synctest.Wait() // until the last hold has ended
		letGo()
		for _, e := range endings {
			wantError(t, "SaveContent", e.wait(), nil)
		}
		// The first commit, which was held back, has one of the earlier versions. The second commit has the last.
		encoded := 0
		for _, version := range versions {
			encoded += version.encoded
		}
		if last := versions[len(versions)-1].encoded; last != 1 || encoded > 2 {
			t.Errorf("the versions were encoded %d times, and the last %d times", encoded, last)
		}
		if r, err := d.st.Load(t.Context(), theID, Terms{}); string(r.Data) != "4444" || err != nil {
			t.Errorf("stored is %q, %v", r.Data, err)
		}
	})
}

// A record that cannot be used is not passed on: the next hold reads it itself. Once the record is replaced, the
// next hold builds on the new one.
func TestTenureOfAnUnusableRecord(t *testing.T) {
	eachDesk(t, patient, func(t *testing.T, d *desk) {
		d.Do(t, "SET", theRecord, "garbage")
		first, _, err := d.st.Take(t.Context(), theID, Terms{})
		wantError(t, "Take", err, ErrCorrupt)
		waiting := guests(t, d.st, 3, Terms{})
		first.Release(t.Context())
		<-waiting[0].came
		wantError(t, "the second Take", waiting[0].err, ErrCorrupt)
		wantError(t, "Touch", waiting[0].hold.Touch(t.Context()), nil)
		<-waiting[1].came
		wantError(t, "the third Take", waiting[1].err, ErrCorrupt)
		takes := d.count(takeScript)
		if takes != 3 {
			t.Errorf("%d takes, want 3", takes)
		}
		save(t, waiting[1].hold, "1")
		save(t, waiting[2].holds(t, "1"), "2")
		if again := d.count(takeScript); again != takes {
			t.Errorf("%d takes, want %d: the record was replaced", again, takes)
		}
		d.wantQuiet(t, "2")
	})
}

// granted ends a hold, and grants the session to the next request in line. It calls but before the goroutine of that
// request goes on.
func granted(t *testing.T, h *Hold, but func(next *tenure)) {
	t.Helper()
	h.tenure.mu.Lock()
	defer h.tenure.unlock()
	h.over = true
	if h.tenure.vacate(time.Now()) {
		t.Fatal("no request was granted the session")
	}
	but(h.tenure)
}

// A request is granted the session, and cannot use it: the process was paused, or a commit has failed. The request
// acquires the session anew, and at once. No handler begins with a session that is lost already.
func TestAGrantThatIsVoidIsReplaced(t *testing.T) {
	for name, but := range map[string]func(tn *tenure){
		"the tenure is over":    func(tn *tenure) { tn.fail(ErrUnavailable, "") },
		"its MaxHold is over":   func(tn *tenure) { tn.term.Limit(time.Now(), 0) },
		"the session was ended": func(tn *tenure) { tn.lose(ErrLost) },
	} {
		t.Run(name, atDesk(patient, func(t *testing.T, d *desk) {
			first := take(t, d.st)
			waiting := guests(t, d.st, 1, Terms{})
			begun := time.Now()
			granted(t, first, but)
			h := waiting[0].holds(t, "0")
			if took := time.Since(begun); took > time.Second {
				t.Errorf("the request had the session after %v", took)
			}
			save(t, h, "1")
			d.wantQuiet(t, "1")
		}))
	}
}

// A request is granted the session just as its client leaves. It leaves no lock behind, and the next request has the
// session at once.
func TestAGrantToWhoHasLeft(t *testing.T) {
	eachDesk(t, patient, func(t *testing.T, d *desk) {
		first := take(t, d.st)
		ctx, leave := context.WithCancel(t.Context())
		left := begin(func() error {
			_, _, err := d.st.Take(ctx, theID, Terms{LockWait: patient.Lease})
			return err
		})
		synctest.Wait()
		waiting := guests(t, d.st, 1, Terms{})
		begun := time.Now()
		granted(t, first, func(*tenure) { leave() })
		wantError(t, "Take of who has left", left.wait(), context.Canceled)
		save(t, waiting[0].holds(t, "0"), "1")
		if took := time.Since(begun); took > time.Second {
			t.Errorf("the next request had the session after %v", took)
		}
		d.wantQuiet(t, "1")
	})
}

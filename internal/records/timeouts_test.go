package records

import (
	"fmt"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/lua"
	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/internal/scripting"
)

// The scripts and Go agree on the timeouts of a record.
func TestScriptsSeeTheTimesThatGoSees(t *testing.T) {
	inFakeTime(t, func(t *testing.T, s *redistest.Server) {
		runner := onPool(s.Pool(t, 1), patient).runner
		text, err := lua.Whole(`{{template "times"}} return {times(ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6])}`, lua.Parts())
		must(t, err)
		script := scripting.NewScript(text)
		terms := Terms{TTL: time.Hour, Lifetime: 24 * time.Hour}
		for _, own := range []string{"", `,"i":1`, `,"i":60000`, `,"i":999999999999`, `,"u":1`, `,"u":1700000060123`,
			`,"u":999999999999999`, `,"i":60000,"u":1700000060123`} {
			for _, age := range []time.Duration{0, 23*time.Hour + 30*time.Minute, 25 * time.Hour} {
				for _, data := range []string{`"d":{}`, `"d":{"u":5,"i":7}`, `"d":","u":5,"`, `"e":","u":5,"d":{}`, "\"e\":\x00\xff\n"} {
					stored := fmt.Sprintf(`{"v":2,"s":"%s","c":%d%s,%s}`, theRevision, born.UnixMilli(), own, data)
					r, _, _, err := parseHead([]byte(stored), theForm.bond)
					if err != nil {
						t.Fatalf("%s: %v", stored, err)
					}
					now := born.Add(age)
					seen := func(idle time.Duration, quiet string) (left, puts int64) {
						reply, err := runner.Run(t.Context(), script, nil, stored, now.UnixMilli(), terms.outlived(now), idle.Milliseconds(), quiet)
						must(t, err)
						left, _ = reply.IntAt(1)
						puts, _ = reply.IntAt(2)
						return left, puts
					}
					left, idle := seen(terms.TTL, "")
					if want := terms.left(&r, now).Milliseconds(); left != want || left > 0 && idle != terms.expiry(&r, now) {
						t.Errorf("%s, %v old: scripts see %d and %d ms, Go %d and %d", stored, age, left, idle, want, terms.expiry(&r, now))
					}
					for _, most := range []time.Duration{0, 12 * time.Second} { // for a job
						if _, idle := seen(most, yes); idle != min(left, most.Milliseconds()) {
							t.Errorf("%s, %v old: a job extends it by %d ms", stored, age, idle)
						}
					}
				}
			}
		}
	})
}

// ownTimes are sessions of all kinds. want is their time to live after a use, with a TTL of an hour and a
// Lifetime of ten.
var ownTimes = map[string]struct{ idle, until, age, want time.Duration }{
	"by the terms":              {0, 0, 9 * time.Hour, time.Hour},
	"near its lifetime":         {0, 0, 9*time.Hour + 45*time.Minute, 15 * time.Minute},
	"a guest":                   {20 * time.Minute, 0, time.Hour, 20 * time.Minute},
	"a guest near its lifetime": {20 * time.Minute, 0, 9*time.Hour + 45*time.Minute, 15 * time.Minute},
	"remembered":                {0, 720 * time.Hour, 100 * time.Hour, 720 * time.Hour},
	"remembered for a moment":   {0, 5 * time.Minute, time.Hour, 5 * time.Minute},
	"a remembered guest":        {20 * time.Minute, 48 * time.Hour, 11 * time.Hour, 48 * time.Hour},
}

// recordOf returns a record of this age. Timeouts of its own, if any, count from now.
func recordOf(idle, until, age time.Duration) Record {
	now := time.Now()
	r := Record{Data: []byte("1"), Created: now.Add(-age), revision: theRevision}
	if idle > 0 || until > 0 {
		r.Own = &Times{Idle: idle}
	}
	if until > 0 {
		r.Own.Until = now.Add(until)
	}
	return r
}

// P12: every use of a session extends its idle timeout, when it begins and when it ends, but not beyond the
// absolute timeout. A session's own timeouts replace those of the terms. A session that is taken shortly before
// it expires is made to outlast the lock.
func TestWhateverUsesASessionKeepsToItsOwnTimes(t *testing.T) {
	t.Parallel()
	terms := Terms{TTL: time.Hour, Lifetime: 10 * time.Hour}
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		st := process(t, s)
		for name, tt := range ownTimes {
			for use, end := range uses {
				for _, left := range []time.Duration{5 * time.Second, min(2*time.Minute, tt.want)} {
					r := recordOf(tt.idle, tt.until, tt.age)
					s.Do(t, "SET", theRecord, r.text(nil), "PX", left.Milliseconds())
					h := takeBy(t, st, terms)
					if left < patient.Lease {
						wantExpiry(t, s, theRecord, max(tt.want, patient.Lease+outlast))
					}
					s.Do(t, "PEXPIRE", theRecord, left.Milliseconds())
					wantError(t, name+", "+use, end(t.Context(), h), nil)
					wantExpiry(t, s, theRecord, tt.want)
				}
			}
			r := recordOf(tt.idle, tt.until, tt.age)
			had := terms.expiry(&r, time.Now())
			if tt.until == 0 {
				had = 60_000 // as if no request had come for a while
			}
			s.Do(t, "SET", theRecord, r.text(nil), "PX", had)
			got, err := st.Load(t.Context(), theID, terms)
			if err != nil || string(got.Data) != "1" {
				t.Errorf("%s: Load: %+v, %v", name, got, err)
			}
			wantExpiry(t, s, theRecord, tt.want)
		}
	})
}

// A remembered session ends at its Until, whether or not Redis still has it. Its Lifetime does not end it.
func TestOnlyItsOwnEndEndsARememberedSession(t *testing.T) {
	inFakeTime(t, func(t *testing.T, s *redistest.Server) {
		terms := Terms{TTL: time.Hour, Lifetime: 10 * time.Hour}
		for _, tt := range []struct {
			age, until time.Duration // the age now, and the time until Until
			want       error
		}{{20 * time.Hour, time.Hour, nil}, {20 * time.Hour, 0, ErrNotFound}, {0, 0, ErrNotFound}, {0, -time.Hour, ErrNotFound}} {
			st := process(t, s)
			r := Record{Data: []byte("1"), Created: time.Now().Add(-tt.age), Own: &Times{Until: time.Now().Add(tt.until)}, revision: theRevision}
			s.Do(t, "SET", theRecord, r.text(nil), "PX", 30_000)
			_, err := st.Load(t.Context(), theID, terms)
			wantError(t, "Load", err, tt.want)
			if left := expiry(t, s, theRecord); tt.want != nil && left > 30*time.Second {
				t.Errorf("Load has extended a session that has ended: it has %v left", left)
			}
			h, _, err := st.Take(t.Context(), theID, terms)
			wantError(t, "Take", err, tt.want)
			if err == nil {
				h.Release(t.Context())
			}
		}
	})
}

// Create and a hold store the timeouts that they are given. With a new ID, a session keeps Until, and loses a
// guest's idle timeout.
func TestOwnTimesAreStored(t *testing.T) {
	inFakeTime(t, func(t *testing.T, s *redistest.Server) {
		ctx, st := t.Context(), process(t, s)
		terms := Terms{TTL: time.Hour, Lifetime: 10 * time.Hour, GuestTTL: 20 * time.Minute}
		wantOwn := func(id string, want *Times) {
			t.Helper()
			r, err := st.Load(ctx, id, Terms{})
			if err != nil || (r.Own == nil) != (want == nil) || want != nil && (r.Own.Idle != want.Idle || r.Own.Until.UnixMilli() != want.Until.UnixMilli()) {
				t.Fatalf("%s has %+v, %v, want %+v", id, r.Own, err, want)
			}
		}
		must(t, st.Create(ctx, theID, []byte("1"), terms))
		guest := &Times{Idle: 20 * time.Minute}
		wantOwn(theID, guest)
		wantExpiry(t, s, theRecord, 20*time.Minute)

		h := take(t, st)
		until := time.Now().Add(720 * time.Hour)
		h.Record.Own = &Times{h.Record.Own.Idle, until}
		save(t, h, "2")
		wantOwn(theID, &Times{20 * time.Minute, until})
		wantExpiry(t, s, theRecord, 720*time.Hour)

		h = take(t, st)
		save(t, h, "3")
		wantOwn(theID, &Times{20 * time.Minute, until})

		must(t, take(t, st).Renew(ctx, newID, []byte("4")))
		wantOwn(newID, &Times{Until: until})
		wantExpiry(t, s, newRecord, 720*time.Hour)
	})
}

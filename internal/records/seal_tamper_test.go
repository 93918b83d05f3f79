package records

import (
	"bytes"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/redistest"
)

// tampered are records that an attacker has changed or replaced in Redis, in addition to those of
// TestEachByteOfASealedRecordCounts.
func tampered(t testing.TB) map[string][]byte {
	t.Helper()
	const data = `{"user":"ann"}`
	record := sealed(t, encrypted(newKey), data)
	otherPrefix := encrypted(newKey)
	otherPrefix.Prefix = "other:"
	head := len(record) - sealBytes - len(data) - 1
	edit := func(f func(b []byte) []byte) []byte { return f(bytes.Clone(record)) }
	return map[string][]byte{
		"moved to another ID":  Record{Data: []byte(data), Created: born, revision: theRevision}.text(boxOf(t, encrypted(newKey), newID)),
		"under another prefix": sealed(t, otherPrefix, data),
		"an unknown key":       sealed(t, encrypted(oldKey), data),
		"not sealed":           formatRecord(theRevision, born, []byte(data)),
		"only a key ID":        edit(func(b []byte) []byte { return append(b[:head+keyIDBytes], '}') }),
		"nothing at all":       edit(func(b []byte) []byte { return append(b[:head], '}') }),
		"longer":               edit(func(b []byte) []byte { return append(b[:len(b)-1], "x}"...) }),
		"an end of its own":    edit(func(b []byte) []byte { return slices.Insert(b, head-len(sealedMark), []byte(`,"u":2000000000000`)...) }),
	}
}

// Every reader detects a record that was changed or moved in Redis. Such a record can be replaced.
func TestTamperedRecords(t *testing.T) {
	t.Parallel()
	terms := Terms{Lifetime: 100 * 365 * 24 * time.Hour, LockWait: time.Minute} // since born is long ago
	redistest.InFakeTime(t, func(t *testing.T, s *redistest.Server) {
		st := onPool(s.Pool(t, 8), encrypted(newKey))
		s.Do(t, "SET", theRecord, sealed(t, encrypted(newKey), "1"))
		if r, err := st.Load(t.Context(), theID, terms); string(r.Data) != "1" || err != nil {
			t.Fatalf("the genuine record: %+v, %v", r, err)
		}
		for name, stored := range tampered(t) {
			s.Do(t, "SET", theRecord, stored, "PX", 60_000)
			r, err := st.Load(t.Context(), theID, terms)
			wantError(t, name+": Load", err, ErrCorrupt)
			if r.Data != nil {
				t.Errorf("%s: Load returns %q", name, r.Data)
			}
			h, _, err := st.Take(t.Context(), theID, terms)
			wantError(t, name+": Take", err, ErrCorrupt)
			if h == nil || h.Record.Data != nil {
				t.Fatalf("%s: Take returns %+v", name, h)
			}
			save(t, h, "anew")
			if r, err := st.Load(t.Context(), theID, terms); string(r.Data) != "anew" || err != nil {
				t.Errorf("%s: after it was replaced: %+v, %v", name, r, err)
			}
		}
		wantFree(t, s)
	})
}

// No byte of a sealed record may be changed or missing.
func TestEachByteOfASealedRecordCounts(t *testing.T) {
	t.Parallel()
	b := boxOf(t, encrypted(newKey), theID)
	record := sealed(t, encrypted(newKey), `{"user":"ann"}`)
	own := Record{Data: []byte("1"), Created: born, Own: &Times{time.Minute, born.Add(time.Hour)}, revision: theRevision}
	for _, record := range [][]byte{record, own.text(b)} {
		eachByteCounts(t, record, form{bond: theForm.bond, box: b})
	}
	ofUser := Record{Data: []byte("1"), Created: born, User: "ann", Device: "Firefox", revision: theRevision, epoch: "123456789012345"}
	f := form{theForm.bond, true, b}
	eachByteCounts(t, ofUser.text(b), f)
	_, at, _, err := parseBeginning(ofUser.text(b), f)
	must(t, err)
	eachByteCountsIn(t, ofUser.text(b)[:at], func(text []byte) ([]byte, error) {
		r, _, _, err := parseBeginning(text, f)
		return []byte(r.Device), err
	})
}

func eachByteCounts(t *testing.T, record []byte, f form) {
	t.Helper()
	eachByteCountsIn(t, record, func(text []byte) ([]byte, error) {
		r, err := parse(text, f)
		return r.Data, err
	})
}

// eachByteCountsIn tries all changes of one byte, except in a user's epoch, which Redis writes.
func eachByteCountsIn(t *testing.T, record []byte, parse func([]byte) ([]byte, error)) {
	t.Helper()
	epoch := bytes.Index(record, []byte(epochMark))
	if data, err := parse(record); len(data) == 0 || err != nil {
		t.Errorf("as it was: %q, %v", data, err)
	}
	for i := range record {
		for bit := range 8 {
			changed := bytes.Clone(record)
			changed[i] ^= 1 << bit
			if digit := i - epoch - len(epochMark); epoch >= 0 && digit >= 0 && digit < epochDigits {
				continue
			}
			if data, err := parse(changed); err == nil || len(data) > 0 {
				t.Errorf("%q is opened as %q", changed, data)
			}
		}
		for _, cut := range [][]byte{record[:i], slices.Delete(bytes.Clone(record), i, i+1)} {
			data, err := parse(cut)
			wantError(t, fmt.Sprintf("%q", cut), err, ErrCorrupt)
			if len(data) > 0 {
				t.Errorf("%q is opened as %q", cut, data)
			}
		}
	}
}

// A record is opened only if it is, to the byte, what was sealed.
func FuzzOpenSealed(f *testing.F) {
	b := boxOf(f, encrypted(newKey, oldKey), theID)
	record := sealed(f, encrypted(newKey), `{"user":"ann"}`)
	f.Add(record)
	f.Add(sealed(f, encrypted(oldKey), `{"user":"ann"}`))
	for _, stored := range tampered(f) {
		f.Add(stored)
	}
	f.Fuzz(func(t *testing.T, stored []byte) {
		// The seeds are sealed with new nonces in each process, so the sealed records of a corpus are not
		// genuine.
		if r, err := parse(stored, form{bond: theForm.bond, box: b}); err == nil && string(r.Data) != `{"user":"ann"}` {
			t.Errorf("%q is opened as %q", stored, r.Data)
		} else if err != nil {
			wantError(t, "parse", err, ErrCorrupt)
		}
		if _, _, sealed, err := parseHead(stored, theForm.bond); sealed && err == nil && !seenByScripts.Match(stored) {
			t.Errorf("scripts cannot read %q", stored)
		}
		changed := append(bytes.Clone(record), stored...)
		if r, err := parse(changed, form{bond: theForm.bond, box: b}); err == nil && len(stored) > 0 {
			t.Errorf("%q is opened as %q", changed, r.Data)
		}
	})
}

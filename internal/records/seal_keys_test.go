package records

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"strings"
	"testing"

	"github.com/a2139e8d/latchkey/internal/redistest"
)

// keyChanges are the steps by which keys are added, replaced and removed. For a while, processes of two
// neighbouring steps run side by side. reason says why the last step cannot read what the first step has stored.
var keyChanges = map[string]struct {
	steps  []Encryption
	reason string
}{
	"encryption begins": {[]Encryption{
		{},
		{Keys: [][]byte{oldKey}, WritePlain: true},
		{Keys: [][]byte{oldKey}, AcceptPlain: true},
		{Keys: [][]byte{oldKey}},
	}, "it is not sealed"},
	"encryption ends": {[]Encryption{
		{Keys: [][]byte{oldKey}},
		{Keys: [][]byte{oldKey}, AcceptPlain: true},
		{Keys: [][]byte{oldKey}, WritePlain: true},
		{},
	}, "it is sealed, and Options.Encryption has no Keys"},
	"a key is rotated": {[]Encryption{
		{Keys: [][]byte{oldKey}},
		{Keys: [][]byte{oldKey, newKey}},
		{Keys: [][]byte{newKey, oldKey}},
		{Keys: [][]byte{newKey}},
	}, "which is not in Options.Encryption"},
}

// by opens the store of a process with this Encryption.
func by(t *testing.T, s *redistest.Server, e Encryption) *Engine {
	o := patient
	o.Encryption = e
	return onPool(s.Pool(t, 8), o)
}

// Processes of the step before and of the step after can read the sessions of a step. Processes of the last step
// cannot read what the first step has stored, and say why.
func TestEncryptionBeginsAndEnds(t *testing.T) {
	for name, change := range keyChanges {
		t.Run(name, fakeTime(func(t *testing.T, s *redistest.Server) {
			first, last := by(t, s, change.steps[0]), by(t, s, change.steps[len(change.steps)-1])
			create(t, first, "0")
			_, err := last.Load(t.Context(), theID, Terms{})
			wantError(t, "Load by the last step", err, ErrCorrupt)
			wantMessage(t, err, []string{change.reason})
			for i, e := range change.steps {
				st := by(t, s, e)
				must(t, take(t, st).Touch(t.Context())) // writes no record
				data := fmt.Sprint("secret ", i)
				save(t, take(t, st), data)
				for j, e := range change.steps[max(0, i-1):min(len(change.steps), i+2)] {
					if got := string(load(t, by(t, s, e)).Data); got != data {
						t.Errorf("what step %d has stored, its neighbour %d reads as %q", i, j, got)
					}
				}
				stored, _ := s.Get(t, theRecord)
				if seals := len(e.Keys) > 0 && !e.WritePlain; strings.Contains(stored, data) == seals {
					t.Errorf("step %d stores %q", i, stored)
				}
			}
		}))
	}
}

// The error of a wrong key names its index. A store with such options stores nothing, even if the caller does not
// call Err.
func TestWrongEncryption(t *testing.T) {
	t.Parallel()
	r := redistest.Embedded(t)
	for _, tt := range []struct {
		of   Encryption
		want string
	}{
		{Encryption{Keys: [][]byte{nil}}, "Encryption.Keys[0] has 0 bytes"},
		{Encryption{Keys: [][]byte{newKey, []byte("my short secret")}}, "Encryption.Keys[1] has 15 bytes: it must have at least 32 random ones"},
		{Encryption{Keys: [][]byte{make([]byte, 32)}}, "Encryption.Keys[0] is 32 times the same byte: it must have at least 32 random ones"},
		{Encryption{Keys: [][]byte{newKey, oldKey, newKey}}, "Encryption.Keys[2] is there twice"},
		{Encryption{AcceptPlain: true}, "Encryption has no Keys"},
		{Encryption{WritePlain: true}, "Encryption has no Keys"},
	} {
		st := onPool(r.Pool(t, 1), Options{Encryption: tt.of})
		_, loading := st.Load(t.Context(), theID, Terms{})
		_, _, taking := st.Take(t.Context(), theID, Terms{})
		for _, err := range []error{st.Err(), st.Create(t.Context(), theID, []byte("1"), Terms{}), loading, taking} {
			if err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "secret") {
				t.Errorf("%q: got %v", tt.want, err)
			}
		}
	}
	if keys := r.Keys(t); len(keys) > 0 {
		t.Errorf("stored keys: %q", keys)
	}
}

// Printing a store shows no key. The caller may change its copy of a key afterwards.
func TestEncryptionKeysAreKeptApart(t *testing.T) {
	t.Parallel()
	r := redistest.Embedded(t)
	key := make([]byte, 32)
	for i := range key {
		key[i] = byte(0xa1 + 3*i)
	}
	part, whole := bytes.Clone(key[4:8]), base64.StdEncoding.EncodeToString(key[:30])
	st := onPool(r.Pool(t, 1), encrypted(key))
	create(t, st, "1")
	h := take(t, st)
	var seen string
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%x"} {
		for _, v := range []any{st, *st.ring, st.ring.masters, h.tenure.box} {
			seen += fmt.Sprintf(verb, v)
		}
	}
	h.Release(t.Context())
	clear(key)
	if r, err := st.Load(t.Context(), theID, Terms{}); string(r.Data) != "1" || err != nil {
		t.Errorf("after the caller has changed its key: %q, %v", r.Data, err)
	}
	for _, form := range []string{string(part), hex.EncodeToString(part), strings.Trim(fmt.Sprint(part), "[]"),
		strings.TrimSuffix(strings.TrimPrefix(fmt.Sprintf("%#v", part), "[]byte{"), "}"), whole} {
		if strings.Contains(seen, form) {
			t.Errorf("the key is printed, as %q", form)
		}
	}
	if !strings.Contains(seen, DefaultPrefix) {
		t.Errorf("the store is not printed: %s", seen)
	}
}

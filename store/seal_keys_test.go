package store

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"strings"
	"testing"

	"github.com/a2139e8d/latchkey/internal/redistest"
)

// A record says which key it is sealed with. All keys open, the newest seals, and what was sealed
// with one that is not there any more cannot be read.
func TestKeysAreRotated(t *testing.T) {
	inFakeTime(t, func(t *testing.T, s *redistest.Server) {
		before, first := New(s.Pool(t, 8), encrypted(oldKey)), New(s.Pool(t, 8), encrypted(oldKey, newKey))
		second, after := New(s.Pool(t, 8), encrypted(newKey, oldKey)), New(s.Pool(t, 8), encrypted(newKey))
		reads := func(st *Store, want string) {
			t.Helper()
			r, err := st.Load(t.Context(), theID, Terms{})
			if string(r.Data) != want || err != nil {
				t.Errorf("got %q, %v, want %q", r.Data, err, want)
			}
		}
		create(t, before, "1")
		save(t, take(t, first), "2") // the old key is still the first one
		reads(before, "2")
		reads(second, "2")
		_, err := after.Load(t.Context(), theID, Terms{})
		wantError(t, "Load without the old key", err, ErrCorrupt)

		h := take(t, second)
		if err := h.Touch(t.Context()); err != nil { // a touch writes no record
			t.Error(err)
		}
		reads(before, "2")
		save(t, take(t, second), "3")
		reads(first, "3")
		reads(after, "3")
		_, err = before.Load(t.Context(), theID, Terms{})
		wantError(t, "Load without the new key", err, ErrCorrupt)
	})
}

// From plain records to sealed ones and back, in steps that leave every session readable to the
// processes of the step before and of the one after. Sealed records without keys, and plain
// ones where none are accepted, are refused with the reason.
func TestEncryptionBeginsAndEnds(t *testing.T) {
	inFakeTime(t, func(t *testing.T, s *redistest.Server) {
		step := func(e Encryption) *Store {
			o := patient
			o.Encryption = e
			return New(s.Pool(t, 8), o)
		}
		keys := [][]byte{newKey}
		none, only := step(Encryption{}), step(Encryption{Keys: keys})
		writing, accepting := step(Encryption{Keys: keys, WritePlain: true}), step(Encryption{Keys: keys, AcceptPlain: true})
		neighbours := func(writer *Store, data string, isSealed bool, readers ...*Store) {
			t.Helper()
			save(t, take(t, writer), data)
			for i, reader := range readers {
				if r, err := reader.Load(t.Context(), theID, Terms{}); string(r.Data) != data || err != nil {
					t.Errorf("after %s reader %d has %q, %v", data, i, r.Data, err)
				}
			}
			stored, _ := s.Get(t, theRecord)
			if _, got, _ := parseStored([]byte(stored)); got != isSealed {
				t.Errorf("%s is stored as %q", data, stored)
			}
		}
		create(t, none, "0")
		neighbours(none, "plain", false, none, writing, accepting)
		neighbours(writing, "still plain", false, none, writing, accepting)
		_, err := only.Load(t.Context(), theID, Terms{})
		wantError(t, "a plain record", err, ErrCorrupt)
		if !strings.Contains(fmt.Sprint(err), "it is not sealed") {
			t.Error(err)
		}
		neighbours(accepting, "sealed", true, writing, accepting, only)
		neighbours(only, "still sealed", true, writing, accepting, only)
		_, err = none.Load(t.Context(), theID, Terms{})
		wantError(t, "a sealed record without keys", err, ErrCorrupt)
		if !strings.Contains(fmt.Sprint(err), "it is sealed, and Options.Encryption has no Keys") {
			t.Error(err)
		}
	})
}

// Wrong keys are an error that names them by their place, and a store with such options stores
// nothing, even where nobody asks for its error.
func TestWrongEncryption(t *testing.T) {
	t.Parallel()
	r := redistest.Embedded(t)
	for _, tt := range []struct {
		of   Encryption
		want string
	}{
		{Encryption{Keys: [][]byte{nil}}, "Encryption.Keys[0] has 0 bytes"},
		{Encryption{Keys: [][]byte{newKey, []byte("my short secret")}}, "Encryption.Keys[1] has 15 bytes: it must have at least 32 random ones"},
		{Encryption{Keys: [][]byte{newKey, oldKey, newKey}}, "Encryption.Keys[2] is there twice"},
		{Encryption{AcceptPlain: true}, "Encryption has no Keys"},
		{Encryption{WritePlain: true}, "Encryption has no Keys"},
	} {
		_, err := Open("redis://"+r.Addr, Options{Encryption: tt.of})
		st := New(r.Pool(t, 1), Options{Encryption: tt.of})
		_, loading := st.Load(t.Context(), theID, Terms{})
		_, taking := st.Take(t.Context(), theID, Terms{})
		for _, err := range []error{err, st.Err(), st.Create(t.Context(), theID, []byte("1"), Terms{}), loading, taking} {
			if err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "secret") {
				t.Errorf("%q: got %v", tt.want, err)
			}
		}
	}
	if keys := r.Keys(t); len(keys) > 0 {
		t.Errorf("stored were %q", keys)
	}
}

// A store shows its keys to no printer, and what the caller does with its own copy does not matter.
func TestEncryptionKeysAreKeptApart(t *testing.T) {
	t.Parallel()
	r := redistest.Embedded(t)
	key := make([]byte, 32)
	for i := range key {
		key[i] = byte(0xa1 + 3*i)
	}
	part, whole := bytes.Clone(key[4:8]), base64.StdEncoding.EncodeToString(key[:30])
	st := New(r.Pool(t, 1), encrypted(key))
	create(t, st, "1")
	h := take(t, st)
	var seen string
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%x"} {
		for _, v := range []any{st, *st.ring, st.ring.masters, h.fence.(*tenure).box} {
			seen += fmt.Sprintf(verb, v)
		}
	}
	h.Release(t.Context())
	clear(key)
	if r, err := st.Load(t.Context(), theID, Terms{}); string(r.Data) != "1" || err != nil {
		t.Errorf("without the caller's copy: %q, %v", r.Data, err)
	}
	for _, form := range []string{string(part), hex.EncodeToString(part), strings.Trim(fmt.Sprint(part), "[]"),
		strings.TrimSuffix(strings.TrimPrefix(fmt.Sprintf("%#v", part), "[]byte{"), "}"), whole} {
		if strings.Contains(seen, form) {
			t.Errorf("the key is there, as %q", form)
		}
	}
	if !strings.Contains(seen, DefaultPrefix) {
		t.Errorf("nothing to look at: %s", seen)
	}
}

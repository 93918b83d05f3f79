package records

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/locker/transport"
)

// The master keys of these tests.
var (
	oldKey = bytes.Repeat([]byte("old "), 8)
	newKey = bytes.Repeat([]byte("new "), 8)
)

// encrypted returns patient with these keys, newest first.
func encrypted(keys ...[]byte) Options {
	o := patient
	o.Encryption.Keys = keys
	return o
}

// boxOf returns the box of a session.
func boxOf(t testing.TB, o Options, id string) *box {
	t.Helper()
	st := New(transport.NewRedigo(nil, time.Second), o)
	must(t, st.Err())
	return st.box(id)
}

// sealed returns the stored form of data, sealed for theID.
func sealed(t testing.TB, o Options, data string) []byte {
	t.Helper()
	return Record{Data: []byte(data), Created: born, revision: theRevision}.text(boxOf(t, o, theID))
}

// Scripts and people can read the head of a sealed record, as of any other. Of the data, the record shows only
// the size: not even whether they have changed.
func TestSealedForm(t *testing.T) {
	t.Parallel()
	const data = `{"card":"4111 1111 1111 1111"}`
	one, two := sealed(t, encrypted(newKey), data), sealed(t, encrypted(newKey), data)
	want := `{"v":2,"s":"` + theRevision + `","c":1700000000123,"e":`
	if !bytes.HasPrefix(one, []byte(want)) || !bytes.HasSuffix(one, []byte("}")) {
		t.Errorf("stored is %q", one)
	}
	plain := formatRecord(theRevision, born, []byte(data))
	if len(one) != len(plain)+sealBytes || cap(one) != len(one) {
		t.Errorf("the sealed record has %d bytes in %d, unsealed it has %d", len(one), cap(one), len(plain))
	}
	if same := len(want) + keyIDBytes; !bytes.Equal(one[:same], two[:same]) || bytes.Contains(two, one[same:same+12]) {
		t.Error("two seals do not differ in their nonces alone")
	}
	for _, record := range [][]byte{one, two} {
		if r, err := parse(record, form{bond: theForm.bond, box: boxOf(t, encrypted(newKey), theID)}); string(r.Data) != data || !r.Created.Equal(born) || err != nil {
			t.Errorf("opened it is %q of %v, %v", r.Data, r.Created, err)
		}
	}
}

// With encryption, a session's data never leave the process in plain, so neither Redis nor its files have them:
// small or large, in plain commands or in scripts, passed on or renewed.
func TestDataLeaveTheProcessSealed(t *testing.T) {
	t.Parallel()
	const secret = "4111 1111 1111 1111"
	redistest.InFakeTime(t, func(t *testing.T, s *redistest.Server) {
		ctx := t.Context()
		st, p := tapped(t, s, encrypted(newKey))
		want := func(id, data string) {
			t.Helper()
			r, err := st.Load(ctx, id, Terms{})
			if string(r.Encoded()) != data || err != nil {
				t.Errorf("Load: %.40q, %v; want %.40q", r.Encoded(), err, data)
			}
			h := takeID(t, st, id)
			if string(h.Record.Encoded()) != data {
				t.Errorf("Take: %.40q, want %.40q", h.Record.Encoded(), data)
			}
			must(t, h.Touch(ctx))
		}
		create(t, st, secret+"1")
		want(theID, secret+"1")
		save(t, take(t, st), secret+"2")
		want(theID, secret+"2")
		save(t, take(t, st), large(secret))
		want(theID, large(secret))
		must(t, take(t, st).SaveContent(ctx, &countedContent{text: secret + "3"}))
		want(theID, secret+"3")
		h := take(t, st)
		waiting := guests(t, st, 1, Terms{})
		save(t, h, secret+"4")
		h = waiting[0].holds(t, secret+"4")
		must(t, h.Renew(ctx, newID, []byte(secret+"5")))
		want(newID, secret+"5")
		_, err := st.Load(ctx, theID, Terms{})
		wantError(t, "Load of the old ID", err, ErrGone)

		sent := p.Commands()
		for _, c := range sent {
			if strings.Contains(strings.Join(c.Args, " "), secret) {
				t.Errorf("%s has the secret", c.Name)
			}
		}
		if len(sent) < 10 {
			t.Errorf("only %d commands were seen", len(sent))
		}
	})
}

// Scripts can read a record's head, whatever bytes the sealed data have. 1 KB of sealed data has nearly every
// byte, and differs each time.
func TestScriptsDoNotMindRawBytes(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		st := onPool(s.Pool(t, 8), encrypted(newKey))
		create(t, st, "0")
		for i := range 50 {
			data := fmt.Sprint(i, strings.Repeat("x", 1000+50*i))
			h, _, err := st.Take(t.Context(), theID, []Terms{{}, {TTL: time.Second}}[i%2]) // the latter needs the script
			must(t, err)
			save(t, h, data)
			if got := string(load(t, st).Data); got != data {
				t.Fatalf("%d: %.40q", i, got)
			}
		}
	})
}

// P13: MaxBytes bounds the stored record, including its seal. A larger record is refused as a
// whole, and nothing changes.
func TestMaxBytes(t *testing.T) {
	t.Parallel()
	terms := Terms{MaxBytes: 150}
	for name, o := range map[string]Options{"plain": patient, "sealed": encrypted(newKey)} {
		t.Run(name, fakeTime(func(t *testing.T, s *redistest.Server) {
			ctx, st := t.Context(), onPool(s.Pool(t, 8), o)
			room := terms.MaxBytes - len(formatRecord(strings.Repeat("A", revisionLength), time.Now(), nil))
			if name == "sealed" {
				room -= sealBytes
			}
			fits, over := strings.Repeat("x", room), strings.Repeat("x", room+1)
			wantError(t, "Create", st.Create(ctx, theID, []byte(over), terms), ErrTooLarge)
			must(t, st.Create(ctx, theID, []byte(fits), terms))
			content := &countedContent{text: over}
			h := takeBy(t, st, terms)
			for what, write := range map[string]func() error{
				"Save":        func() error { return h.Save(ctx, []byte(over)) },
				"SaveContent": func() error { return h.SaveContent(ctx, content) },
				"Renew":       func() error { return h.Renew(ctx, newID, []byte(over)) },
			} {
				wantError(t, what, write(), ErrTooLarge)
				wantFree(t, s)
				if got := string(load(t, st).Data); got != fits || len(stored(t, s)) < terms.MaxBytes {
					t.Errorf("after %s the record has %q, stored as %q", what, got, stored(t, s))
				}
				h = takeBy(t, st, terms)
			}
			wantNoRenewal(t, s)
			must(t, h.SaveContent(ctx, &countedContent{text: fits}))
			if content.encoded > 0 {
				t.Error("a content that is too large was encoded")
			}
		}))
	}
}

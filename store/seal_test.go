package store

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
	st := NewOn(transport.NewRedigo(nil, time.Second), o)
	if err := st.Err(); err != nil {
		t.Fatal(err)
	}
	return st.box(id)
}

// processWith returns the store of another process.
func (s *site) processWith(t *testing.T, o Options) *Store {
	t.Helper()
	return s.open(s.Pool(t, 8), s.locks.Pool(t, 8), o)
}

// sealed returns the stored form of data, sealed for theID.
func sealed(t testing.TB, o Options, data string) []byte {
	t.Helper()
	return Record{Data: []byte(data), Created: born, name: "ABCDEFGHIJKLMNOP"}.text(boxOf(t, o, theID))
}

// The head of a sealed record is as legible as any, for the scripts and for people. Of the data it
// shows the size, and not even whether they are the same as before.
func TestSealedForm(t *testing.T) {
	t.Parallel()
	const data = `{"card":"4111 1111 1111 1111"}`
	one, two := sealed(t, encrypted(newKey), data), sealed(t, encrypted(newKey), data)
	const want = `{"v":2,"s":"ABCDEFGHIJKLMNOP","c":1700000000123,"e":`
	if !bytes.HasPrefix(one, []byte(want)) || !bytes.HasSuffix(one, []byte("}")) {
		t.Errorf("stored is %q", one)
	}
	plain := formatRecord("ABCDEFGHIJKLMNOP", born, []byte(data))
	if len(one) != len(plain)+sealBytes || cap(one) != len(one) {
		t.Errorf("it has %d bytes in %d, and %d unsealed", len(one), cap(one), len(plain))
	}
	if same := len(want) + keyIDBytes; !bytes.Equal(one[:same], two[:same]) || bytes.Contains(two, one[same:same+12]) {
		t.Error("two seals do not differ in their nonces alone")
	}
	for _, record := range [][]byte{one, two} {
		if r, err := parseRecord(record, boxOf(t, encrypted(newKey), theID)); string(r.Data) != data || !r.Created.Equal(born) || err != nil {
			t.Errorf("opened it is %q of %v, %v", r.Data, r.Created, err)
		}
	}
}

// Whatever is done with a session, its data are never on the wire, and so neither in Redis nor in
// what Redis writes: small or large, in plain commands or in scripts, handed over or renewed.
func TestDataLeaveTheProcessSealed(t *testing.T) {
	t.Parallel()
	const secret = "4111 1111 1111 1111"
	eachFence(t, func(t *testing.T, s *site) {
		ctx := t.Context()
		p := redistest.NewProxy(t, s.Server)
		p.Forget()
		st := s.open(p.Pool(t, 8), s.locks.Pool(t, 8), encrypted(newKey))
		want := func(id, data string) {
			t.Helper()
			r, err := st.Load(ctx, id, Terms{})
			if string(r.Encoded()) != data || err != nil {
				t.Errorf("Load: %.40q, %v; want %.40q", r.Encoded(), err, data)
			}
			h, err := st.Take(ctx, id, Terms{})
			if err != nil {
				t.Fatal(err)
			}
			if string(h.Record.Encoded()) != data {
				t.Errorf("Take: %.40q, want %.40q", h.Record.Encoded(), data)
			}
			if err := h.Touch(ctx); err != nil {
				t.Error(err)
			}
		}
		create(t, st, secret+"1")
		want(theID, secret+"1")
		save(t, take(t, st), secret+"2")
		want(theID, secret+"2")
		save(t, take(t, st), large(secret))
		want(theID, large(secret))
		if err := take(t, st).SaveContent(ctx, &countedContent{text: secret + "3"}); err != nil {
			t.Error(err)
		}
		want(theID, secret+"3")
		h := take(t, st)
		if s.locks == s.Server { // elsewhere nothing is handed over
			waiting := guests(t, st, 1, Terms{})
			save(t, h, secret+"4")
			h = waiting[0].holds(t, secret+"4")
		}
		if err := h.Renew(ctx, newID, []byte(secret+"5")); err != nil {
			t.Error(err)
		}
		want(newID, secret+"5")
		_, err := st.Load(ctx, theID, Terms{})
		wantError(t, "Load of the old id", err, ErrGone)

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

// The scripts know a record by its head, whatever bytes it is sealed into: among 1 KB there is nearly
// every one, and it is another 1 KB each time.
func TestScriptsDoNotMindRawBytes(t *testing.T) {
	t.Parallel()
	eachFence(t, func(t *testing.T, s *site) {
		st := s.processWith(t, encrypted(newKey))
		hasty := Terms{TTL: time.Second, LockWait: time.Minute} // takes by script
		create(t, st, "0")
		for i := range 50 {
			data := fmt.Sprint(i, strings.Repeat("x", 1000+50*i))
			terms := []Terms{{}, hasty}[i%2]
			h, err := st.Take(t.Context(), theID, terms)
			if err != nil {
				t.Fatal(err)
			}
			save(t, h, data)
			if r, err := st.Load(t.Context(), theID, Terms{TTL: time.Hour, Lifetime: 2 * time.Hour}); string(r.Data) != data || err != nil {
				t.Fatalf("%d: %.40q, %v", i, r.Data, err)
			}
		}
	})
}

// MaxBytes is what is stored. A record that is too large only because it is sealed is refused as well.
func TestMaxBytesCountsTheSeal(t *testing.T) {
	t.Parallel()
	eachFence(t, func(t *testing.T, s *site) {
		ctx, st, terms := t.Context(), s.processWith(t, encrypted(newKey)), Terms{MaxBytes: 150}
		room := 150 - len(formatRecord(strings.Repeat("A", stampLength), time.Now(), nil)) - sealBytes
		fits, over := []byte(strings.Repeat("x", room)), []byte(strings.Repeat("x", room+1))
		wantError(t, "Create", st.Create(ctx, theID, over, terms), ErrTooLarge)
		if err := st.Create(ctx, theID, fits, terms); err != nil {
			t.Fatal(err)
		}
		for what, end := range map[string]func(h *Hold, data []byte) error{
			"Save":        func(h *Hold, data []byte) error { return h.Save(ctx, data) },
			"SaveContent": func(h *Hold, data []byte) error { return h.SaveContent(ctx, &countedContent{text: string(data)}) },
		} {
			for _, data := range [][]byte{over, fits} {
				h, err := st.Take(ctx, theID, terms)
				if err != nil {
					t.Fatal(err)
				}
				if err := end(h, data); len(data) > room {
					wantError(t, what, err, ErrTooLarge)
				} else if err != nil {
					t.Errorf("%s of what fits: %v", what, err)
				}
			}
		}
		if stored, _ := s.Get(t, theRecord); len(stored) != terms.MaxBytes {
			t.Errorf("the largest one has %d bytes", len(stored))
		}
	})
}

// Of versions that are stored together only the last one is sealed, and a session's key is derived
// once for all of them.
func TestOneSealForAGroup(t *testing.T) {
	o := encrypted(newKey)
	o.Encryption.AcceptPlain = true // such as a desk begins with
	eachDesk(t, o, func(t *testing.T, d *desk) {
		save(t, take(t, d.st), "0")
		versions := []*countedContent{{text: "1"}, {text: "2"}, {text: "3"}, {text: "4"}}
		h := take(t, d.st)
		key := h.fence.(*tenure).box.newest
		if key == nil {
			t.Error("nothing was opened by the take")
		}
		waiting := guests(t, d.st, len(versions)-1, Terms{})
		letGo := d.holdBack(t)
		var endings []*ending
		for i, version := range versions {
			if i > 0 {
				h = waiting[i-1].holds(t, "")
			}
			saver := h
			endings = append(endings, begin(func() error { return saver.SaveContent(t.Context(), version) }))
		}
		shared := h.fence.(*tenure)
		eventually(t, "the last one has ended its hold", func() bool {
			shared.mu.Lock()
			defer shared.mu.Unlock()
			return shared.newest == len(versions)
		})
		letGo()
		all := 0
		for i, e := range endings {
			if err := e.wait(); err != nil {
				t.Error(err)
			}
			all += versions[i].encoded
		}
		if all > 2 {
			t.Errorf("%d versions were encoded", all)
		}
		if shared.box.newest != key {
			t.Error("the key was derived again")
		}
		r, err := d.st.Load(t.Context(), theID, Terms{})
		if string(r.Data) != "4" || err != nil {
			t.Errorf("stored is %q, %v", r.Data, err)
		}
	})
}

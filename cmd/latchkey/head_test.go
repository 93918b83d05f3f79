package main

import (
	"encoding/base64"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/records"
	"github.com/a2139e8d/latchkey/store"
)

// The head of every record that the library writes is understood.
func TestHeadsOfRealRecords(t *testing.T) {
	s, plain := withRedis(t)
	sealedWith := []byte("0123456789abcdef0123456789abcdef")
	sealed := opened(t, s.URL, store.Options{Timeout: 20 * time.Second, Prefix: "sealed:",
		Encryption: store.Encryption{Keys: [][]byte{sealedWith}}})
	created, until := time.Now().Truncate(time.Millisecond).UTC(), time.Now().Add(time.Hour).Truncate(time.Millisecond).UTC()
	for prefix, st := range map[string]*store.Store{records.DefaultPrefix: plain, "sealed:": sealed} {
		engine := records.Of(st)
		tag := engine.Tag("ann")
		tagText := base64.RawURLEncoding.EncodeToString(tag[:])
		for key, r := range map[string]records.Record{
			"{guest}":                       {},
			"{idle}":                        {Own: &records.Times{Idle: 5 * time.Minute}},
			"{until}":                       {Own: &records.Times{Until: until}},
			"{both}":                        {Own: &records.Times{Idle: 5 * time.Minute, Until: until}},
			"{" + tagText + "}:oneSession1": {User: "ann", Device: "a browser"},
			"{" + tagText + "}:oneSession2": {User: "ann", Own: &records.Times{Until: until}},
		} {
			id := key[1 : len(key)-1]
			if r.User != "" {
				id = tagText + "." + key[len(key)-11:]
			}
			r.Created, r.Data = created, []byte(`{"n":1}`)
			if err := engine.CreateRecord(t.Context(), id, r, records.Terms{}); err != nil {
				t.Fatalf("%s: %v", id, err)
			}
			want := head{created: created, sealed: st == sealed}
			if want.sealed {
				want.key, _ = records.KeyID(sealedWith)
			}
			if r.Own != nil {
				want.idle = r.Own.Idle
				if !r.Own.Until.IsZero() {
					want.until = until
				}
			}
			text := get(t, s, prefix+key)
			if got, ok := parseHead(text); !ok || got != want {
				t.Errorf("%q is %+v, %v; want %+v", text, got, ok, want)
			}
		}
	}
}

// A record without the time when its session began cannot be read.
func TestHeadWithoutItsBeginning(t *testing.T) {
	t.Parallel()
	for _, text := range []string{`{"v":2,"s":"x","c":0,"d":{}}`, `{"v":2,"s":"x","c":253402300800000,"d":{}}`} {
		if h, ok := parseHead(text); ok {
			t.Errorf("%s is %+v", text, h)
		}
	}
}

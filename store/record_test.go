package store

import (
	"bytes"
	"encoding/json"
	"errors"
	"regexp"
	"strings"
	"testing"
	"time"
)

var born = time.UnixMilli(1_700_000_000_123)

// People read records with redis-cli, scripts with a pattern. So the stored form
// is fixed to the byte.
func TestStoredForm(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, want string
		stored     []byte
	}{
		{"record", `{"v":1,"stamp":"WRITER","created":1700000000123,"data":{"n":7}}`,
			formatRecord("WRITER", born, []byte(`{"n":7}`))},
		{"tombstone", `{"v":1,"stamp":"WRITER","gone":1700000000123}`,
			formatTombstone("WRITER", born)},
	} {
		if string(tt.stored) != tt.want {
			t.Errorf("%s:\n got %s\nwant %s", tt.name, tt.stored, tt.want)
		}
		var v struct {
			V             int
			Stamp         string
			Created, Gone int64
			Data          struct{ N int }
		}
		if err := json.Unmarshal(tt.stored, &v); err != nil {
			t.Errorf("%s: %v", tt.name, err)
		}
		if v.V != 1 || v.Stamp != "WRITER" || v.Created+v.Gone != born.UnixMilli() {
			t.Errorf("%s: encoding/json reads %+v", tt.name, v)
		}
		if bytes.ContainsRune(tt.stored, '\n') {
			t.Errorf("%s is more than one line", tt.name)
		}
	}
}

func TestRecordRoundTrip(t *testing.T) {
	t.Parallel()
	for _, data := range []string{
		`{}`,
		`{"name":"Łukasz 🗝"}`,
		`}`,
		`{"trap":",\"data\":"},"data":{}`,
		"\x00\xff\xfe binary \r\n}",
		strings.Repeat("x", 1<<20),
	} {
		got, err := parseRecord(formatRecord("WRITER", born, []byte(data)))
		if err != nil || string(got.Data) != data || !got.Created.Equal(born) {
			t.Errorf("%.40q: got %.40q, %v, %v", data, got.Data, got.Created, err)
		}
	}
}

func TestParseRecordRefuses(t *testing.T) {
	t.Parallel()
	for name, stored := range map[string]string{
		"empty":                  ``,
		"foreign":                `O:8:"stdClass":0:{}`,
		"later version":          `{"v":2,"stamp":"A","created":1,"data":{}}`,
		"version 10":             `{"v":10,"stamp":"A","created":1,"data":{}}`,
		"other order":            `{"stamp":"A","v":1,"created":1,"data":{}}`,
		"spaces":                 `{"v":1, "stamp":"A", "created":1, "data":{}}`,
		"something before":       ` {"v":1,"stamp":"A","created":1,"data":{}}`,
		"something after":        `{"v":1,"stamp":"A","created":1,"data":{}} `,
		"tombstone":              `{"v":1,"stamp":"A","gone":1}`,
		"head missing":           `A","created":1,"data":{}}`,
		"stamp missing":          `{"v":1,"created":1,"data":{}}`,
		"stamp empty":            `{"v":1,"stamp":"","created":1,"data":{}}`,
		"stamp with a quote":     `{"v":1,"stamp":"A\"","created":1,"data":{}}`,
		"stamp not ASCII":        `{"v":1,"stamp":"é","created":1,"data":{}}`,
		"stamp with a space":     `{"v":1,"stamp":"A B","created":1,"data":{}}`,
		"creation missing":       `{"v":1,"stamp":"A","data":{}}`,
		"creation empty":         `{"v":1,"stamp":"A","created":,"data":{}}`,
		"creation text":          `{"v":1,"stamp":"A","created":"1","data":{}}`,
		"creation negative":      `{"v":1,"stamp":"A","created":-1,"data":{}}`,
		"creation negative zero": `{"v":1,"stamp":"A","created":-0,"data":{}}`,
		"creation with plus":     `{"v":1,"stamp":"A","created":+1,"data":{}}`,
		"creation with zeros":    `{"v":1,"stamp":"A","created":01,"data":{}}`,
		"creation fraction":      `{"v":1,"stamp":"A","created":1.5,"data":{}}`,
		"creation exponent":      `{"v":1,"stamp":"A","created":1e3,"data":{}}`,
		"creation out of range":  `{"v":1,"stamp":"A","created":9223372036854775808,"data":{}}`,
		"data missing":           `{"v":1,"stamp":"A","created":1}`,
		"data empty":             `{"v":1,"stamp":"A","created":1,"data":}`,
	} {
		got, err := parseRecord([]byte(stored))
		if !errors.Is(err, ErrCorrupt) {
			t.Errorf("%s: got %+v, %v, want ErrCorrupt", name, got, err)
		}
	}
}

// Cut off anywhere, a record is refused. Only where what is left happens to end
// with a brace, it takes package session to see that the data is no JSON.
func TestParseRecordRefusesTruncated(t *testing.T) {
	t.Parallel()
	stored := formatRecord("WRITER", born, []byte(`"text"`))
	for n := range stored {
		if _, err := parseRecord(stored[:n]); !errors.Is(err, ErrCorrupt) {
			t.Errorf("%s: %v, want ErrCorrupt", stored[:n], err)
		}
	}
}

// What the scripts look for in a record, in the syntax of Go.
var seenByScripts = regexp.MustCompile(`^\{"v":1,"stamp":"([0-9A-Za-z]+)","created":(\d+),`)

// What parses is canonical: written again, it is the same to the byte. And the
// scripts see in it what Go sees.
func FuzzParseRecord(f *testing.F) {
	f.Fuzz(func(t *testing.T, stored []byte) {
		r, err := parseRecord(stored)
		if err != nil {
			if !errors.Is(err, ErrCorrupt) {
				t.Errorf("error %v, want ErrCorrupt", err)
			}
			return
		}
		seen := seenByScripts.FindSubmatch(stored)
		if seen == nil {
			t.Fatalf("scripts cannot read %q", stored)
		}
		if again := formatRecord(string(seen[1]), r.Created, r.Data); !bytes.Equal(again, stored) {
			t.Errorf("%q is written again as %q", stored, again)
		}
	})
}

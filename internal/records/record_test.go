package records

import (
	"bytes"
	"errors"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/lease"
)

var born = time.UnixMilli(1_700_000_000_123)

// People read records with redis-cli, and scripts read them with a pattern. So the stored form is fixed to the
// byte.
func TestStoredForm(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, want string
		stored     []byte
	}{
		{"record", `{"v":2,"s":"WRITER","c":1700000000123,"d":{"n":7}}`,
			formatRecord("WRITER", born, []byte(`{"n":7}`))},
		{"record with timeouts of its own", `{"v":2,"s":"WRITER","c":1700000000123,"i":300000,"u":1702592000123,"d":{"n":7}}`,
			Record{Data: []byte(`{"n":7}`), Created: born, Own: &Times{5 * time.Minute, born.Add(720 * time.Hour)}, revision: "WRITER"}.text(nil)},
		{"tombstone", `{"v":2,"s":"WRITER","gone":1700000000123}`,
			formatTombstone("WRITER", born, nil)},
	} {
		if string(tt.stored) != tt.want {
			t.Errorf("%s:\n got %s\nwant %s", tt.name, tt.stored, tt.want)
		}
	}
}

// These texts are seeds, in addition to those of testdata/fuzz.
func TestParseRecordRefuses(t *testing.T) {
	t.Parallel()
	for name, stored := range map[string]string{
		"later version":         `{"v":3,"s":"ABCDEFGHIJKLMNOP","c":1,"d":{}}`,
		"other order":           `{"s":"ABCDEFGHIJKLMNOP","v":2,"c":1,"d":{}}`,
		"spaces":                `{"v":2, "s":"ABCDEFGHIJKLMNOP", "c":1, "d":{}}`,
		"something after":       `{"v":2,"s":"ABCDEFGHIJKLMNOP","c":1,"d":{}} `,
		"revision empty":        `{"v":2,"s":"","c":1,"d":{}}`,
		"revision with a quote": `{"v":2,"s":"ABCDEFGHIJKLMNO\"","c":1,"d":{}}`,
		"revision too short":    `{"v":2,"s":"ABCDEFGHIJKLMNO","c":1,"d":{}}`,
		"revision too long":     `{"v":2,"s":"ABCDEFGHIJKLMNOPQ","c":1,"d":{}}`,
		"another's revision":    `{"v":2,"s":"ABCEDFGHIJKLMNOP","c":1,"d":{}}`,
		"creation empty":        `{"v":2,"s":"ABCDEFGHIJKLMNOP","c":,"d":{}}`,
		"creation text":         `{"v":2,"s":"ABCDEFGHIJKLMNOP","c":"1","d":{}}`,
		"creation negative":     `{"v":2,"s":"ABCDEFGHIJKLMNOP","c":-1,"d":{}}`,
		"creation out of range": `{"v":2,"s":"ABCDEFGHIJKLMNOP","c":9223372036854775808,"d":{}}`,
		"creation too late":     `{"v":2,"s":"ABCDEFGHIJKLMNOP","c":253402300800000,"d":{}}`,
		"idle zero":             `{"v":2,"s":"ABCDEFGHIJKLMNOP","c":1,"i":0,"d":{}}`,
		"idle negative":         `{"v":2,"s":"ABCDEFGHIJKLMNOP","c":1,"i":-5,"d":{}}`,
		"idle too long":         `{"v":2,"s":"ABCDEFGHIJKLMNOP","c":1,"i":1000000000000,"d":{}}`,
		"idle twice":            `{"v":2,"s":"ABCDEFGHIJKLMNOP","c":1,"i":5,"i":5,"d":{}}`,
		"end too late":          `{"v":2,"s":"ABCDEFGHIJKLMNOP","c":1,"u":1000000000000000,"d":{}}`,
		"end before idle":       `{"v":2,"s":"ABCDEFGHIJKLMNOP","c":1,"u":5,"i":5,"d":{}}`,
		"something unknown":     `{"v":2,"s":"ABCDEFGHIJKLMNOP","c":1,"x":5,"d":{}}`,
		"something between":     `{"v":2,"s":"ABCDEFGHIJKLMNOP","c":1,"i":5,,"d":{}}`,
	} {
		got, err := parse([]byte(stored), form{bond: lease.BondIn("ABCD")})
		if !errors.Is(err, ErrCorrupt) {
			t.Errorf("%s: got %+v, %v, want ErrCorrupt", name, got, err)
		}
	}
}

// The patterns by which scripts read a record, in the syntax of Go.
var seenByScripts = regexp.MustCompile(`^\{"v":2,"s":"([0-9A-Za-z]+)","c":(\d+)(?:,"i":(\d+))?(?:,"u":(\d+))?,"`)

// A record that can be parsed is canonical: formatting it again gives the same bytes. Scripts read the same
// values from it as Go.
func FuzzParseRecord(f *testing.F) {
	f.Fuzz(func(t *testing.T, stored []byte) {
		r, err := parse(stored, form{bond: lease.BondIn("ABCD")})
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
		r.revision = string(seen[1])
		if again := r.text(nil); !bytes.Equal(again, stored) {
			t.Errorf("%q is formatted again as %q", stored, again)
		}
		var own Times
		if r.Own != nil {
			own = *r.Own
		}
		if idle, _ := strconv.ParseInt(string(seen[3]), 10, 64); own.Idle.Milliseconds() != idle {
			t.Errorf("%q: Go sees the idle timeout %v, scripts %d ms", stored, own.Idle, idle)
		}
		if until, _ := strconv.ParseInt(string(seen[4]), 10, 64); until == 0 && !own.Until.IsZero() || until > 0 && own.Until.UnixMilli() != until {
			t.Errorf("%q: Go sees the end %v, scripts %d", stored, own.Until, until)
		}
	})
}

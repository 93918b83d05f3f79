package records

import (
	"errors"
	"strings"
	"testing"

	"github.com/a2139e8d/latchkey/internal/lease"
)

// A record of a later format is not mistaken for a damaged one, whatever else is in its head.
func TestARecordOfALaterFormat(t *testing.T) {
	t.Parallel()
	for stored, later := range map[string]string{
		`{"v":3,"s":"ABCDEFGHIJKLMNOP","c":1,"d":{}}`:   "its format is 3, ",
		`{"v":12345,"s":"ABCDEFGHIJKLMNOP","gone":1}`:   "its format is 12345, ",
		`{"v":4,"something":"else"}`:                    "its format is 4, ",
		`{"v":1,"s":"ABCDEFGHIJKLMNOP","c":1,"d":{}}`:   "",
		`{"v":2,"something":"else"}`:                    "",
		`{"v":-3,"s":"ABCDEFGHIJKLMNOP","c":1,"d":{}}`:  "",
		`{"v":"3","s":"ABCDEFGHIJKLMNOP","c":1,"d":{}}`: "",
		`{"v":3`: "",
		`{"v":`:  "",
		`{"v":3333333333333333333333,"s":"A","c":1}`: "",
		`{"user":"ann"}`: "",
		`3,"s":`:         "",
		"":               "",
		`{"s":"ABCDEFGHIJKLMNOP","v":3,"c":1,"d":{}}`:     "",
		`{"v": 3, "s":"ABCDEFGHIJKLMNOP", "c":1, "d":{}}`: "",
	} {
		_, err := parse([]byte(stored), form{bond: lease.BondIn("ABCD")})
		if !errors.Is(err, ErrCorrupt) || errors.Is(err, ErrLaterFormat) != (later != "") || !strings.Contains(err.Error(), later) {
			t.Errorf("%s: %v", stored, err)
		}
	}
}

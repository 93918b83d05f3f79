package session_test

import (
	"errors"
	"math/big"
	"net/url"
	"reflect"
	"sync"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/session"
)

type (
	hidden   struct{ secret int }
	shown    struct{ Name string }
	itself   struct{ itself []itself }
	marker   struct{ _ [0]func() }
	endless  []endless
	circular map[string]*circular
)

// JSON would keep nothing of these values, of what they point to, or of their elements. So a Set fails.
func TestAValueOfWhichJSONWouldKeepNothingFailsTheCommit(t *testing.T) {
	t.Parallel()
	h := &hidden{1}
	for name, v := range map[string]any{
		"struct":                             hidden{1},
		"its zero value":                     hidden{},
		"pointer":                            h,
		"pointer to a pointer":               &h,
		"element of a slice":                 []hidden{{1}},
		"element of an array":                [1]*hidden{h},
		"value of a map":                     map[string][]hidden{"a": {{1}}},
		"no element yet":                     []hidden{},
		"error":                              errors.Join(errors.New("a"), errors.New("b")),
		"mutex":                              &sync.Mutex{},
		"embedded":                           struct{ hidden }{},
		"embedded with other things":         struct{ sync.Mutex }{},
		"embedded interface":                 struct{ error }{errors.New("a")},
		"holds itself":                       itself{},
		"value whose methods need a pointer": *big.NewInt(1),
		"in an array, which has no address":  [1]big.Int{*big.NewInt(1)},
		"in a map, whose values have no addresses":  map[string]big.Int{"a": *big.NewInt(1)},
		"in a pointer to an array of maps of these": &[1]map[int]big.Int{},
	} {
		var s session.Session
		s.Set("key", v)
		if err := s.Commit(t.Context()); err == nil {
			raw, _ := session.Get[any](&s, "key")
			t.Errorf("%s, a %T, is stored as %v", name, v, raw)
		}
	}
}

// All others can be stored.
func TestAValueOfWhichJSONKeepsSomethingIsStored(t *testing.T) {
	t.Parallel()
	for name, v := range map[string]any{
		"nil pointer":           (*hidden)(nil),
		"nil slice":             []hidden(nil),
		"nil map":               map[string]hidden(nil),
		"set":                   map[string]struct{}{"a": {}},
		"nothing to lose":       marker{},
		"exported field":        shown{"Ann"},
		"embedded":              struct{ shown }{shown{"Ann"}},
		"embedded by a pointer": struct{ *shown }{&shown{"Ann"}},
		"embedded with a name": struct {
			hidden `json:"its"`
		}{},
		"a field of a struct":       struct{ H hidden }{},
		"in an interface":           []any{hidden{1}},
		"time":                      time.Unix(1, 0),
		"times":                     map[string][]time.Time{"a": {time.Unix(1, 0)}},
		"by a pointer":              big.NewInt(1),
		"elements have addresses":   []big.Int{*big.NewInt(1)},
		"a pointer gives addresses": &[1]big.Int{*big.NewInt(1)},
		"address":                   url.URL{Host: "example.com"},
		"holds itself":              endless{{}},
		"holds itself by a pointer": circular{"a": {}},
	} {
		var s session.Session
		s.Set("key", v)
		if err := s.Commit(t.Context()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Two things do not come back as they were set, as always with encoding/json: see Set.
func TestWhatDoesNotComeBackAsItWas(t *testing.T) {
	t.Parallel()
	type noted struct {
		Name string
		note string
		Any  any
	}
	var s session.Session
	s.Set("noted", noted{Name: "Ann", note: "dropped", Any: shown{"Bob"}})
	s.Set("url", url.URL{Scheme: "https", User: url.UserPassword("ann", "secret"), Host: "example.com"})
	n, ok := session.Get[noted](&s, "noted")
	if want := (noted{Name: "Ann", Any: map[string]any{"Name": "Bob"}}); !ok || !reflect.DeepEqual(n, want) {
		t.Errorf("Get = %#v, %v, want %#v", n, ok, want)
	}
	if u, ok := session.Get[url.URL](&s, "url"); !ok || u.User.String() != "" || u.Host != "example.com" {
		t.Errorf("Get = %v, %v", &u, ok)
	}
	if err := s.Commit(t.Context()); err != nil {
		t.Error(err)
	}
}

package otellatchkey

import (
	"maps"
	"strings"
	"sync"
	"sync/atomic"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// other is OpenTelemetry's word for a value that is not one of those that are expected.
const other = "_OTHER"

// mostCombinations is how many combinations of attributes an instrument has at most.
const mostCombinations = 1000

// overflow is what OpenTelemetry's SDK also has instead of the attributes of further combinations.
var overflow = attribute.Bool("otel.metric.overflow", true)

// A vocabulary is the values that an attribute has had. Further ones become other if there are too many, or if they
// do not look as they should.
type vocabulary struct {
	most  int
	fits  func(string) bool
	known map[string]bool
}

// words are written like our own: too_many_waiters.
func words(most int) vocabulary {
	return vocabulary{most, consistsOf("abcdefghijklmnopqrstuvwxyz_"), nil}
}

// keywords are written like Redis's: EVALSHA.
func keywords(most int) vocabulary {
	return vocabulary{most, consistsOf("ABCDEFGHIJKLMNOPQRSTUVWXYZ_"), nil}
}

// texts are what the application or the machine has named.
func texts(most int) vocabulary {
	return vocabulary{most, func(s string) bool { return len(s) <= 256 }, nil}
}

func consistsOf(letters string) func(string) bool {
	return func(s string) bool { return len(s) <= 24 && strings.Trim(s, letters) == "" }
}

func (v *vocabulary) word(s string) string {
	switch {
	case s == "" || v.known[s]:
		return s
	case len(v.known) >= v.most || !v.fits(s):
		return other
	case v.known == nil:
		v.known = make(map[string]bool)
	}
	v.known[strings.Clone(s)] = true // s may be a part of a large reply
	return strings.Clone(s)
}

// A table has the attributes of each combination of an event's properties. To look them up allocates nothing and
// takes no mutex.
type table[K comparable, V any] struct {
	attributes func(K) V
	bound      func(K) K // called with mu
	full       func() V  // for what is too much

	mu    sync.Mutex
	known atomic.Pointer[map[K]V] // replaced with mu, never changed
}

func newTable[K comparable, V any](bound func(K) K, attributes func(K) V, full func() V) *table[K, V] {
	t := &table[K, V]{attributes: attributes, bound: bound, full: full}
	t.known.Store(&map[K]V{})
	return t
}

func (t *table[K, V]) of(k K) V {
	if v, ok := (*t.known.Load())[k]; ok {
		return v
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	k = t.bound(k)
	known := *t.known.Load()
	v, ok := known[k]
	switch {
	case ok:
	case len(known) >= mostCombinations:
		v = t.full()
	default:
		v = t.attributes(k)
		known = maps.Clone(known)
		known[k] = v
		t.known.Store(&known)
	}
	return v
}

// recordOf returns attributes in the form that Record takes without an allocation.
func recordOf(attributes ...attribute.KeyValue) []metric.RecordOption {
	return []metric.RecordOption{metric.WithAttributeSet(attribute.NewSet(attributes...))}
}

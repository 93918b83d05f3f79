package otellatchkey

import (
	"maps"
	"strings"
	"sync"
	"sync/atomic"

	"go.opentelemetry.io/otel/attribute"
)

// other is OpenTelemetry's word for an unexpected value.
const other = "_OTHER"

// mostCombinations is how many combinations of attributes an instrument has at most.
const mostCombinations = 1000

// overflow replaces the attributes of further combinations, as in OpenTelemetry's SDK.
var overflow = attribute.Bool("otel.metric.overflow", true)

// A vocabulary is the values that an attribute has had. A further value becomes other if there are too many, or if it
// does not look as it should.
type vocabulary struct {
	most  int
	fits  func(string) bool
	known map[string]string
}

// words are written like our own: too_many_waiters.
func words(most int) vocabulary {
	return vocabulary{most, consistsOf("abcdefghijklmnopqrstuvwxyz_"), nil}
}

// keywords are written like Redis's: EVALSHA.
func keywords(most int) vocabulary {
	return vocabulary{most, consistsOf("ABCDEFGHIJKLMNOPQRSTUVWXYZ_"), nil}
}

// numbers are written in digits.
func numbers(most int) vocabulary {
	return vocabulary{most, consistsOf("0123456789"), nil}
}

// texts are names that the application or the machine has chosen.
func texts(most int) vocabulary {
	return vocabulary{most, func(s string) bool { return len(s) <= 256 }, nil}
}

func consistsOf(letters string) func(string) bool {
	return func(s string) bool { return len(s) <= 24 && strings.Trim(s, letters) == "" }
}

// word returns s or other. It keeps no memory of s, which may be a part of a large reply.
func (v *vocabulary) word(s string) string {
	word, known := v.known[s]
	switch {
	case known || s == "":
		return word
	case len(v.known) >= v.most || !v.fits(s):
		return other
	case v.known == nil:
		v.known = make(map[string]string)
	}
	s = strings.Clone(s)
	v.known[s] = s
	return s
}

// A table has a value for each combination of an event's properties, such as its series. A lookup allocates nothing,
// and locks a mutex only if the combination is new, or beyond the limit.
type table[K comparable, V any] struct {
	value func(K) V
	bound func(K) K // called with mu
	full  func() V  // for combinations beyond the limit

	// first has the key that came first to each place, as it came. Such a key is found in a tenth of the time: it is not
	// hashed, and mostly its strings are not read, since the same strings come again. No other key replaces it: what is
	// written often is in no processor's cache.
	first [64]atomic.Pointer[entry[K, V]]

	mu    sync.Mutex
	known atomic.Pointer[map[K]V] // replaced with mu, never changed
}

type entry[K comparable, V any] struct {
	key   K
	value V
}

func newTable[K comparable, V any](bound func(K) K, value func(K) V, full func() V) *table[K, V] {
	t := &table[K, V]{value: value, bound: bound, full: sync.OnceValue(full)}
	t.known.Store(&map[K]V{})
	return t
}

// mixed returns a number that few other texts have.
func mixed(s string) int {
	if s == "" {
		return 0
	}
	return 5*len(s) + int(s[len(s)-1])
}

// of returns the value for a key. place is any number that few other keys have.
func (t *table[K, V]) of(k *K, place int) V {
	first := &t.first[uint(place)%uint(len(t.first))]
	if e := first.Load(); e != nil && e.key == *k {
		return e.value
	}
	if value, ok := (*t.known.Load())[*k]; ok {
		return value
	}
	return t.add(*k, first)
}

func (t *table[K, V]) add(asked K, first *atomic.Pointer[entry[K, V]]) V {
	t.mu.Lock()
	defer t.mu.Unlock()
	k := t.bound(asked)
	known := *t.known.Load()
	value, ok := known[k]
	switch {
	case ok:
		return value
	case len(known) >= mostCombinations:
		return t.full()
	}
	value = t.value(k)
	known = maps.Clone(known)
	known[k] = value
	t.known.Store(&known)
	first.CompareAndSwap(nil, &entry[K, V]{asked, value})
	return value
}

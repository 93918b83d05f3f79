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
	bound func(K) K   // called with mu
	full  func() V    // for combinations beyond the limit
	place func(K) int // in first, any number

	// first has the key that came first to each place. Such a key is found in a tenth of the time, since it is not
	// hashed. No other key replaces it: what is written often is in no processor's cache.
	first [64]atomic.Pointer[entry[K, V]]

	mu    sync.Mutex
	known atomic.Pointer[map[K]*entry[K, V]] // replaced with mu, never changed
}

type entry[K comparable, V any] struct {
	key   K
	value V
}

func newTable[K comparable, V any](bound func(K) K, value func(K) V, full func() V, place func(K) int) *table[K, V] {
	t := &table[K, V]{value: value, bound: bound, full: sync.OnceValue(full), place: place}
	t.known.Store(&map[K]*entry[K, V]{})
	return t
}

// mixed returns a number that few other texts have.
func mixed(texts ...string) (n int) {
	for _, s := range texts {
		n = 5*n + len(s)
		if s != "" {
			n += int(s[len(s)-1])
		}
	}
	return n
}

func (t *table[K, V]) of(k K) V {
	if e := t.placeOf(k).Load(); e != nil && e.key == k {
		return e.value
	}
	if e, ok := (*t.known.Load())[k]; ok {
		return e.value
	}
	return t.add(k)
}

func (t *table[K, V]) placeOf(k K) *atomic.Pointer[entry[K, V]] {
	return &t.first[uint(t.place(k))%uint(len(t.first))]
}

func (t *table[K, V]) add(k K) V {
	t.mu.Lock()
	defer t.mu.Unlock()
	k = t.bound(k)
	known := *t.known.Load()
	e, ok := known[k]
	switch {
	case ok:
		return e.value
	case len(known) >= mostCombinations:
		return t.full()
	}
	e = &entry[K, V]{k, t.value(k)}
	known = maps.Clone(known)
	known[k] = e
	t.known.Store(&known)
	t.placeOf(k).CompareAndSwap(nil, e)
	return e.value
}

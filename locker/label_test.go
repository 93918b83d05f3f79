package locker

import (
	"strings"
	"testing"
)

// The label of one lock comes before that of all.
func TestLabelOfOneOrAll(t *testing.T) {
	t.Parallel()
	var f fake
	locks := New(&f, Options{Label: "all"})
	for label, want := range map[string]string{"": "all", "one": "one"} {
		l, err := locks.Lock(WithLabel(t.Context(), label), "k")
		if err != nil {
			t.Fatal(err)
		}
		if token := f.Holder("k"); !strings.HasSuffix(token, " "+want) {
			t.Errorf("with the label %q: the token is %q", label, token)
		}
		if err := l.Unlock(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

package locker

import "testing"

// The label of one lock comes before that of all.
func TestLabelOfOneOrAll(t *testing.T) {
	t.Parallel()
	var g Guard
	var f fake
	for label, want := range map[string]string{"": "all", "one": "one"} {
		l, err := g.Lock(WithLabel(t.Context(), label), "k", &f, Options{Label: "all"})
		if err != nil {
			t.Fatal(err)
		}
		if owner, ok := parseToken(l.Token()); !ok || owner.Label != want {
			t.Errorf("with the label %q: the owner is %v", label, owner)
		}
		if err := l.Unlock(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

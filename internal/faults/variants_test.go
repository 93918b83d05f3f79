package faults

import (
	"testing"

	"github.com/a2139e8d/latchkey/internal/demotest"
	"github.com/a2139e8d/latchkey/internal/overlay"
)

// Each variant of the demo is one of today's: what it changes is there. make check asks this first,
// since whole runs take long to say so.
func TestEveryVariantApplies(t *testing.T) {
	for what, v := range map[string]*demotest.Variant{
		"a later version": &laterVersion, "other queues": &otherQueues, "foreign records": &foreignVersion,
		"panics": &panicking, "another clock": &clockwork,
	} {
		if _, err := overlay.Apply(v.Edits); err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
}

package faults

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/demotest"
	"github.com/a2139e8d/latchkey/internal/overlay"
)

// panicking is the demo with a handler that sometimes panics after it has changed the
// session.
var panicking = demotest.Variant{Edits: []overlay.Edit{
	overlay.In("cmd/demo", "incr").After(`s.Set("n", v)`, `if time.Now().UnixNano()>>10%8 == 0 {
	s.Set("n", v+999)
	panic("every now and then")
}`),
}}

// Each panic frees the session, and saves nothing of what was set before: otherwise a
// history would have a number that no order explains.
func TestAppPanics(t *testing.T) {
	panicking.Build(t)
	s := stage(t, "a handler panics again and again", "P7: saves nothing, frees the session", setting{logins: true, demos: 1})
	d := s.addVariant(&panicking)
	panics := func() int { return strings.Count(d.Log(), "http: panic serving") }
	s.run(func(ctx context.Context) { pause(ctx, time.Second) })
	happened(t, "a handler has panicked", panics(), 20)
	s.seen = fmt.Sprintf("%d panics", panics())
}

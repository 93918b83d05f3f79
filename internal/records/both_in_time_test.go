package records

import (
	"context"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/redistest"
)

// If plain commands find an unusual case, a script follows. It has the rest of one round trip's time, not that
// time again.
func TestTheScriptBehindPlainCommandsComesInTime(t *testing.T) {
	t.Parallel()
	const timeout = time.Second
	for name, do := range map[string]func(context.Context, *Engine) error{
		"Take": func(ctx context.Context, st *Engine) error { _, _, err := st.Take(ctx, theID, Terms{}); return err },
		"Load": func(ctx context.Context, st *Engine) error { _, err := st.Load(ctx, theID, Terms{}); return err },
	} {
		t.Run(name, fakeTime(func(t *testing.T, s *redistest.Server) {
			s.Do(t, "SET", theRecord, "garbage", "PX", time.Hour.Milliseconds())
			p := redistest.NewProxy(t, s)
			p.Inject(func(cmd redistest.Command) redistest.Fault {
				if cmd.Name == "EVALSHA" {
					return redistest.Hang
				}
				return redistest.Pass
			})
			st := openFar(t, p.Pool(t, 2), 300*time.Millisecond, Options{Timeout: timeout})
			begun := time.Now()
			wantError(t, name, do(t.Context(), st), ErrUnavailable)
			if took := time.Since(begun); took != timeout {
				t.Errorf("both took %v, want %v", took, timeout)
			}
		}))
	}
}

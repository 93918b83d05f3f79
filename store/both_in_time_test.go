package store

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/redistest"
)

// Where plain commands find what is not as usual, the script behind them has what is left of the
// time of one exchange, and not as much again.
func TestTheScriptBehindPlainCommandsComesInTime(t *testing.T) {
	t.Parallel()
	const timeout = time.Second
	for name, do := range map[string]func(context.Context, *Store) error{
		"Take": func(ctx context.Context, st *Store) error {
			_, err := st.Take(ctx, theID, Terms{})
			return err
		},
		"Load": func(ctx context.Context, st *Store) error {
			_, err := st.Load(ctx, theID, Terms{})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			besideRecord(t, func(t *testing.T, s *site) {
				p := redistest.NewProxy(t, s.Server)
				st := s.open(p.Pool(t, 2), nil, Options{Timeout: timeout})
				s.Do(t, "SET", theRecord, "garbage", "PX", time.Hour.Milliseconds())
				p.Inject(func(cmd redistest.Command) redistest.Fault {
					switch cmd.Name {
					case "MGET", "GET":
						time.Sleep(timeout * 6 / 10) // the network's
					case "EVALSHA":
						return redistest.Hang
					}
					return redistest.Pass
				})
				begun := time.Now()
				err := do(t.Context(), st)
				took := time.Since(begun)
				if !errors.Is(err, ErrUnavailable) || took < timeout*9/10 || took > timeout*14/10 {
					t.Errorf("%v after %v, want ErrUnavailable after %v", err, took, timeout)
				}
			})
		})
	}
}

package session_test

import (
	"context"
	"time"

	"github.com/a2139e8d/latchkey/internal/keep"
)

// A keeper is a keep.Keeper of functions. Those that are nil must not be called, but for late.
type keeper struct {
	id     func() string
	commit func(context.Context) error
	reopen func(context.Context) error
	late   func(method, key, sealed string)
	ends   func(renewed, remembered bool, d time.Duration) time.Time
}

var _ keep.Keeper = keeper{}

func (k keeper) SessionID() string                       { return k.id() }
func (k keeper) CommitSession(ctx context.Context) error { return k.commit(ctx) }
func (k keeper) ReopenSession(ctx context.Context) error { return k.reopen(ctx) }

func (k keeper) ChangedLate(method, key, sealed string) {
	if k.late != nil {
		k.late(method, key, sealed)
	}
}

func (k keeper) SessionExpires(renewed, _, remembered bool, d time.Duration) time.Time {
	return k.ends(renewed, remembered, d)
}

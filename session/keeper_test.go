package session_test

import (
	"context"
	"time"

	"github.com/a2139e8d/latchkey/internal/keep"
)

// A keeper is a keep.Keeper of functions. Those that are nil do nothing.
type keeper struct {
	id     func() string
	commit func(context.Context) error
	reopen func(context.Context) error
	late   func(method, key, sealed string)
	ends   func(renewed, remembered bool, d time.Duration) time.Time
}

var _ keep.Keeper = keeper{}

func (k keeper) SessionID() string {
	if k.id == nil {
		return ""
	}
	return k.id()
}

func (k keeper) CommitSession(ctx context.Context) error {
	if k.commit == nil {
		return nil
	}
	return k.commit(ctx)
}

func (k keeper) ReopenSession(ctx context.Context) error {
	if k.reopen == nil {
		return nil
	}
	return k.reopen(ctx)
}

func (k keeper) ChangedLate(method, key, sealed string) {
	if k.late != nil {
		k.late(method, key, sealed)
	}
}

func (k keeper) SessionExpires(renewed, _, remembered bool, d time.Duration) time.Time {
	if k.ends == nil {
		return time.Time{}
	}
	return k.ends(renewed, remembered, d)
}

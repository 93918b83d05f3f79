package session_test

import (
	"context"

	"github.com/a2139e8d/latchkey/internal/keep"
)

// A keeper is a keep.Keeper of functions. Those that are nil do nothing.
type keeper struct {
	id     func() string
	commit func(context.Context) error
	late   func(method, key, sealed string)
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

func (k keeper) ChangedLate(method, key, sealed string) {
	if k.late != nil {
		k.late(method, key, sealed)
	}
}

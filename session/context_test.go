package session_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/a2139e8d/latchkey/internal/keep"
	"github.com/a2139e8d/latchkey/session"
)

// panicText returns the text that f panics with, or "".
func panicText(f func()) (text string) {
	defer func() {
		if v := recover(); v != nil {
			text = v.(string)
		}
	}()
	f()
	return ""
}

func lazyContext(t *testing.T, open func(context.Context) (*session.Session, error)) context.Context {
	return context.WithValue(t.Context(), keep.ContextKey{}, &keep.Lazy{Open: func(ctx context.Context) (any, error) { return open(ctx) }})
}

func TestAHandlerGetsTheSessionOfItsContext(t *testing.T) {
	t.Parallel()
	var s, inner session.Session
	ctx := session.NewContext(t.Context(), &s)
	derived, cancel := context.WithCancel(ctx)
	cancel() // a cancelled request still has its session
	if session.FromContext(ctx) != &s || session.FromContext(derived) != &s {
		t.Error("FromContext is not the session of NewContext")
	}
	if started, err := session.Start(derived); err != nil || started != &s {
		t.Errorf("Start = %p, %v, want the open session %p", started, err, &s)
	}
	if session.FromContext(session.NewContext(ctx, &inner)) != &inner {
		t.Error("the outer session hides the inner one")
	}
}

func TestWithoutASessionFromContextPanicsWithTheRemedy(t *testing.T) {
	t.Parallel()
	lazy := lazyContext(t, func(context.Context) (*session.Session, error) {
		t.Error("FromContext opened the session")
		return new(session.Session), nil
	})
	for ctx, parts := range map[context.Context][]string{
		t.Context(): {"session", "middleware", "Handler", "None"},
		lazy:        {"Lazy", "session.Start(ctx)"},
	} {
		text := panicText(func() { session.FromContext(ctx) })
		for _, part := range parts {
			if !strings.Contains(text, part) {
				t.Errorf("the panic does not mention %q: %q", part, text)
			}
		}
	}
}

func TestWithoutTheMiddlewareStartIsErrNoSession(t *testing.T) {
	t.Parallel()
	s, err := session.Start(t.Context())
	if !errors.Is(err, session.ErrNoSession) || s != nil {
		t.Errorf("Start = %v, %v, want ErrNoSession", s, err)
	}
	if !strings.Contains(err.Error(), "middleware") {
		t.Errorf("the error does not say what to do: %v", err)
	}
}

func TestConcurrentStartsOpenOneSession(t *testing.T) {
	t.Parallel()
	const callers = 16
	var opened atomic.Int32
	arrived := make(chan struct{}, callers)
	ctx := lazyContext(t, func(context.Context) (*session.Session, error) {
		if opened.Add(1) == 1 {
			for range callers { // stay inside until every caller is at the door
				<-arrived
			}
		}
		return new(session.Session), nil
	})
	var wg sync.WaitGroup
	got := make([]*session.Session, callers)
	for i := range callers {
		wg.Go(func() {
			arrived <- struct{}{}
			s, err := session.Start(ctx)
			if err != nil {
				t.Errorf("Start: %v", err)
			}
			got[i] = s
		})
	}
	wg.Wait()
	for _, s := range got {
		if s == nil || s != got[0] {
			t.Errorf("two callers hold two sessions: %p and %p", s, got[0])
		}
	}
	if opened.Load() != 1 {
		t.Errorf("opened %d times", opened.Load())
	}
}

// An open that fails is tried again.
func TestALazySessionIsOpenedOnceWithTheContextOfStart(t *testing.T) {
	t.Parallel()
	type key struct{}
	busy := errors.New("busy")
	var tries int
	ctx := lazyContext(t, func(ctx context.Context) (*session.Session, error) {
		if ctx.Value(key{}) != "the caller's" {
			t.Error("open got another context")
		}
		if tries++; tries == 1 {
			return nil, busy
		}
		return new(session.Session), nil
	})
	called := context.WithValue(ctx, key{}, "the caller's")
	if s, err := session.Start(called); !errors.Is(err, busy) || s != nil {
		t.Errorf("the first Start = %v, %v, want %v", s, err, busy)
	}
	if text := panicText(func() { session.FromContext(ctx) }); !strings.Contains(text, "not started") {
		t.Errorf("FromContext after a failed Start: %q", text)
	}
	for range 2 {
		if s, err := session.Start(called); err != nil || s != session.FromContext(ctx) {
			t.Errorf("Start = %v, %v", s, err)
		}
	}
	if tries != 2 {
		t.Errorf("opened %d times, want 2", tries)
	}
}

package scripting

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"
)

// A dial that hangs, even for ever, keeps its own caller. The others wait no longer
// than they want to; and once that caller's time is over, its lane is another's.
func TestLanesDialHangs(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		p := newPuppet(t, 0)
		forever := make(chan struct{})
		p.pool.Dial = func() (redis.Conn, error) { <-forever; return nil, errors.New("no route") }
		hang := p.crowd("a", "b", "c", "d")
		soon, stop := context.WithTimeout(t.Context(), s)
		defer stop()
		hurried := p.ask(soon, "hurried")
		hurried.wantError(context.DeadlineExceeded, false)
		if hurried.took != s {
			t.Errorf("it waited %v", hurried.took)
		}

		patient := p.ask(t.Context(), "patient")
		time.Sleep(time.Minute - s/2) // the time of the first four is over
		p.pool.Dial = p.dial
		late := p.ask(t.Context(), "late")
		w := p.accept()
		w.wantCommands("patient", "late")
		w.answer("patient", "late")
		patient.wantReply()
		late.wantReply()
		close(forever)
		for _, a := range hang {
			if a.wait(); a.err == nil || Ambiguous(a.err) {
				t.Errorf("%s: %v", a.name, a.err)
			}
		}
		if len(p.lanes().driving) != 0 {
			t.Error("not all lanes are free")
		}
	})
}

// A connection that cannot be made is an error for whoever wanted to make it. The
// next one tries for itself.
func TestLanesDialFails(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		p := newPuppet(t, 1)
		failed, fail := make(chan struct{}), errors.New("connection refused")
		p.pool.Dial = func() (redis.Conn, error) { <-failed; return nil, fail }
		first := p.ask(t.Context(), "first")
		p.pool.Dial = p.dial
		next := p.ask(t.Context(), "next")
		close(failed)
		first.wantError(fail, false)
		w := p.accept()
		w.wantCommands("next")
		w.answer("next")
		next.wantReply()
	})
}

// A panic goes to whoever made the connection, and to nobody else.
func TestLanesDialPanics(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		p := newPuppet(t, 0)
		p.pool.Dial = func() (redis.Conn, error) { panic("no configuration") }
		for range 3 * maxLanes {
			if a := p.ask(t.Context(), "a").wait(); a.panicked != "no configuration" {
				t.Errorf("panic %v", a.panicked)
			}
		}

		panics := make(chan struct{})
		p.pool.Dial = func() (redis.Conn, error) { <-panics; panic("no configuration") }
		first := p.crowd("a", "b", "c", "d")
		p.pool.Dial = p.dial
		next := p.ask(t.Context(), "next")
		close(panics)
		w := p.accept()
		w.wantCommands("next")
		w.answer("next")
		next.wantReply()
		for _, a := range first {
			if a.wait(); a.panicked == nil {
				t.Errorf("no panic: %v", a.err)
			}
		}
	})
}

// When the pool is closed, exchanges on their way are finished, and all others are
// an error at once.
func TestLanesPoolIsClosed(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		p := newPuppet(t, 1)
		first := p.ask(t.Context(), "first")
		w := p.accept()
		w.wantCommands("first")
		waiting := p.crowd("a", "b", "c")
		p.pool.Close()
		w.answer("first")
		first.wantReply()
		for _, a := range append(waiting, p.ask(t.Context(), "late")) {
			a.wantError(ErrUnavailable, false)
			if a.took != 0 {
				t.Errorf("%s waited %v", a.name, a.took)
			}
		}
	})
}

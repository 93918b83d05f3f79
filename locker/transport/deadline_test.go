package transport

import (
	"context"
	"slices"
	"testing"
	"time"
)

// A caller has less time than an exchange may take, and leaves, wherever it stands among others or
// alone. The others notice nothing, and its reply, when it comes, is nobody's.
func TestDeadlineOfTheFirst(t *testing.T) {
	for name, crowd := range map[string][]string{
		"alone": {"hurried"}, "the first": {"hurried", "b", "c"}, "in the middle": {"a", "hurried", "c"}, "the last": {"a", "hurried"},
	} {
		t.Run(name, func(t *testing.T) {
			withPuppet(t, func(t *testing.T, p *puppet) {
				short, stop := context.WithTimeout(t.Context(), s)
				defer stop()
				var w *wire
				var others []*asked
				var hurried *asked
				for _, name := range crowd {
					if name == "hurried" {
						hurried = p.ask(short, name)
					} else {
						others = append(others, p.ask(t.Context(), name))
					}
					if w == nil {
						w = p.accept()
					}
					w.wantCommands(name)
				}
				hurried.wantError(context.DeadlineExceeded, true)
				hurried.wantTook(s)
				i := slices.Index(crowd, "hurried")
				w.answer(crowd[:i+1]...)
				wantReplies(others[:i]...)
				for _, a := range others[i:] {
					a.wantWaiting()
				}
				w.answer(crowd[i+1:]...)
				wantReplies(others...)
				p.wantServedOn(w, "next") // on the same connection
			})
		})
	}
}

// It has its reply as soon as that comes, and does not wait for those of others.
func TestDeadlineIsNotReached(t *testing.T) {
	withPuppet(t, func(t *testing.T, p *puppet) {
		short, stop := context.WithTimeout(t.Context(), s)
		defer stop()
		a := p.ask(short, "a")
		w := p.accept()
		w.wantCommands("a")
		b := p.ask(t.Context(), "b")
		w.wantCommands("b")
		w.answer("a")
		a.wantReply()
		a.wantTook(0)
		b.wantWaiting()
		w.answer("b")
		b.wantReply()
	})
}

// A short deadline that was not answered does not save a Redis that hangs: the connection breaks
// when the exchange could not have been answered in time for anybody.
func TestDeadlineAndTimeout(t *testing.T) {
	withPuppet(t, func(t *testing.T, p *puppet) {
		short, stop := context.WithTimeout(t.Context(), s)
		defer stop()
		a := p.ask(short, "a")
		w := p.accept()
		w.wantCommands("a")
		a.wantError(context.DeadlineExceeded, true)
		begun := time.Now()
		w.wantEnd()
		if after := time.Since(begun); after != time.Minute-s {
			t.Errorf("it ends %v later", after)
		}
	})
}

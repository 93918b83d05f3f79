package records

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/locker/transport"
)

// bugs are what a client does wrong.
var bugs = map[string]func(){"a panic": func() { panic("a bug") }, "Goexit": runtime.Goexit}

// A buggy client fails once, before or after a round trip.
type buggy struct {
	transport.Client
	before, after atomic.Pointer[func()]
}

func (b *buggy) Do(ctx context.Context, key string, commands ...transport.Command) ([]any, error) {
	after := b.after.Swap(nil)
	if before := b.before.Swap(nil); before != nil {
		(*before)()
	}
	replies, err := b.Client.Do(ctx, key, commands...)
	if after != nil {
		(*after)()
	}
	return replies, err
}

// eachBug runs f in fake time for each bug of a client, with a new session that has "0" in it. arm makes the next
// round trip fail.
func eachBug(t *testing.T, o Options, f func(t *testing.T, s *redistest.Server, st *Engine, panics bool, arm func())) {
	t.Helper()
	for name, bug := range bugs {
		for when, of := range map[string]func(*buggy) *atomic.Pointer[func()]{
			"before": func(b *buggy) *atomic.Pointer[func()] { return &b.before },
			"after":  func(b *buggy) *atomic.Pointer[func()] { return &b.after },
		} {
			t.Run(name+" "+when, fakeTime(func(t *testing.T, s *redistest.Server) {
				learn(t, s)
				client := transport.NewRedigo(s.Pool(t, 1), patient.Timeout)
				t.Cleanup(func() { client.Close() })
				b := &buggy{Client: client}
				st := New(b, o)
				create(t, st, "0")
				f(t, s, st, name == "a panic", func() { of(b).Store(&bug) })
			}))
		}
	}
}

// returned reports whether f returns, instead of panicking or calling Goexit.
func returned(f func()) (ok bool) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() { _ = recover() }()
		f()
		ok = true
	}()
	<-done
	return ok
}

// wantServed checks that the session is free within a second, although a lease lasts for a minute, and that it
// can be used.
func wantServed(t *testing.T, st *Engine) {
	t.Helper()
	h, _, err := st.Take(t.Context(), theID, Terms{LockWait: time.Second})
	if err == nil {
		err = h.Save(t.Context(), []byte("next"))
	}
	if err != nil && !errors.Is(err, ErrGone) {
		t.Errorf("the next request: %v", err)
	}
}

// P7: if a client panics or ends its goroutine while a hold ends, that hold fails, and so do the holds that built
// on it. The other requests in line go on.
func TestAClientPanicsAtTheEnd(t *testing.T) {
	for name, end := range ends {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			eachBug(t, patient, func(t *testing.T, _ *redistest.Server, st *Engine, panics bool, arm func()) {
				st.maxUnheard = time.Hour
				h := take(t, st)
				waiting := guests(t, st, 3, Terms{})
				arm()
				begun := time.Now()
				ended := returned(func() {
					if err := end(t.Context(), h); name != "Release" && name != "Touch" {
						wantError(t, name, err, ErrUnavailable)
					}
				})
				// A session that goes on is passed on at once, so another hold may send the commit, and meet the
				// bug.
				if !ended && panics {
					t.Error("the end of the hold did not return")
				}
				var all sync.WaitGroup
				for i, g := range waiting {
					all.Go(func() {
						<-g.came
						if g.err != nil {
							if !errors.Is(g.err, ErrGone) {
								t.Errorf("Take of a waiter: %v", g.err)
							}
							return
						}
						returned(func() {
							if err := g.hold.Save(t.Context(), fmt.Append(nil, i)); err != nil && !errors.Is(err, ErrUnavailable) {
								t.Errorf("Save of a waiter: %v", err)
							}
						})
					})
				}
				all.Wait()
				if took := time.Since(begun); took > time.Second {
					t.Errorf("the waiters were done after %v", took)
				}
				wantServed(t, st)
			})
		})
	}
}

// P7: a client fails likewise while the lock is taken.
func TestAClientPanicsAtTheTake(t *testing.T) {
	eachBug(t, patient, func(t *testing.T, _ *redistest.Server, st *Engine, panics bool, arm func()) {
		arm()
		ended := returned(func() {
			_, _, err := st.Take(t.Context(), theID, Terms{})
			wantError(t, "Take", err, ErrUnavailable)
		})
		if ended != panics {
			t.Errorf("Take has returned: %v", ended)
		}
		wantServed(t, st)
	})
}

// P7: a client fails likewise in the timer that extends the lease, where a panic would end the process. The
// holder goes on. If the goroutine has ended, the holder goes on until its lease ends.
func TestAClientPanicsAtTheRenewal(t *testing.T) {
	o := patient
	o.Lease = 30 * time.Second
	eachBug(t, o, func(t *testing.T, s *redistest.Server, st *Engine, panics bool, arm func()) {
		h := takeBy(t, st, Terms{MaxHold: time.Hour})
		arm()
		redistest.Elapse(o.Lease - time.Second) // it was extended after ten seconds
		save(t, h, "1")
		wantData(t, s, "1")

		h = takeBy(t, st, Terms{MaxHold: time.Hour})
		loss := lossOf(t, h)
		arm()
		redistest.Elapse(2 * o.Lease)
		if lost := loss.Err() != nil; lost == panics {
			t.Errorf("the lock was lost: %v", lost)
		}
		if panics {
			save(t, h, "2")
			return
		}
		wantError(t, "Save", h.Save(t.Context(), []byte("lost")), ErrLost)
		wantServed(t, st)
	})
}

// P7: a client fails likewise in a sweep.
func TestAClientPanicsInASweep(t *testing.T) {
	eachBug(t, patient, func(t *testing.T, s *redistest.Server, st *Engine, panics bool, arm func()) {
		h := take(t, st)
		arm()
		returned(func() { saves(t.Context(), h) })
		arm() // the sweep of the lock fails as well
		redistest.Elapse(patient.Lease)
		wantServed(t, st)
	})
}

// A badContent fails when it is encoded, or when it is measured.
type badContent struct{ size, text func() }

func (c badContent) Size() int {
	if c.size != nil {
		c.size()
	}
	return 1
}

func (c badContent) AppendTo(b []byte) []byte {
	if c.text != nil {
		c.text()
	}
	return append(b, '9')
}

// A Content that panics fails the hold that saves it. It also fails the holds that built on that one, since their
// round trip may encode the Content. Earlier holds are not harmed, and the session is free afterwards.
func TestAContentPanics(t *testing.T) {
	for name, bug := range bugs {
		t.Run(name+" while it is measured", atDesk(patient, func(t *testing.T, d *desk) {
			h := take(t, d.st)
			if returned(func() { h.SaveContent(t.Context(), badContent{size: bug}) }) {
				t.Error("Save has returned")
			}
			wantServed(t, d.st)
			d.wantQuiet(t, "next")
		}))
		t.Run(name+" while it is encoded", atDesk(patient, func(t *testing.T, d *desk) {
			one, waiting, letGo := d.line(t, 2)
			synctest.Wait() // its commit is under way
			bad := begin(func() error {
				return waiting[0].holds(t, "1").SaveContent(t.Context(), badContent{text: bug})
			})
			<-waiting[1].came
			read := begin(func() error { return touches(t.Context(), waiting[1].hold) })
			synctest.Wait()
			letGo()
			wantError(t, "who ended before", one.wait(), nil)
			errs := []error{bad.wait(), read.wait()}
			if name != "a panic" { // Goexit ended one goroutine, which had sent the commit for both
				errs = slices.DeleteFunc(errs, func(err error) bool { return err == nil })
				if len(errs) != 1 {
					t.Errorf("errors %v, want one, from the goroutine that goes on", errs)
				}
			}
			for _, err := range errs {
				wantError(t, "the bad one, or who has read it", err, ErrUnavailable)
				if name == "a panic" {
					wantMessage(t, err, []string{"a bug"})
				}
			}
			wantServed(t, d.st)
			d.wantQuiet(t, "next")
		}))
	}
}

package session

import (
	"runtime"
	"testing"
)

// A rude is a value that cannot be JSON. The text of its error ends the goroutine that asks for it.
type rude struct{}

func (rude) MarshalJSON() ([]byte, error) { return nil, rude{} }
func (rude) Error() string                { runtime.Goexit(); return "" }

// A value that ends the goroutine does not leave the session's mutex locked.
func TestSetDoesNotReturn(t *testing.T) {
	t.Parallel()
	var s Session
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.Set("key", rude{})
		t.Error("Set has returned")
	}()
	<-done
	if !s.mu.TryLock() {
		t.Error("nobody can use the session any more")
	}
}

package session

import (
	"runtime"
	"testing"
)

// A value that is no JSON, and whose error ends the goroutine of whoever asks for its text.
type rude struct{}

func (rude) MarshalJSON() ([]byte, error) { return nil, rude{} }
func (rude) Error() string                { runtime.Goexit(); return "" }

// What a value of the application's does wrong does not keep the session's mutex.
func TestSetDoesNotReturn(t *testing.T) {
	t.Parallel()
	var s Session
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.Set("key", rude{})
		t.Error("it has returned")
	}()
	<-done
	if !s.mu.TryLock() {
		t.Error("nobody can use the session any more")
	}
}

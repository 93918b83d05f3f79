package session

import (
	"runtime"
	"testing"

	"github.com/a2139e8d/latchkey/internal/keep"
)

// A value that is no JSON, and whose error ends the goroutine of whoever asks for its text.
type rude struct{}

func (rude) MarshalJSON() ([]byte, error) { return nil, rude{} }
func (rude) Error() string                { runtime.Goexit(); return "" }

// What a value of the application's does wrong does not keep the session's mutex.
func TestSetDoesNotReturn(t *testing.T) {
	t.Parallel()
	s, err := Open(keep.Config{})
	if err != nil {
		t.Fatal(err)
	}
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

package scripting

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/locker/transport"
)

// A server that does not know a command repeats its arguments, such as a record. The error of a refusal does not.
func TestARefusalRepeatsNoArguments(t *testing.T) {
	t.Parallel()
	said := errors.New("ERR unknown command 'EVALSHA', with args beginning with: 'hash' '1' 'key' 's3cret'")
	err := Refused(said)
	if text := err.Error(); strings.Contains(text, "s3cret") || !strings.Contains(text, "unknown command 'EVALSHA'") {
		t.Error(text)
	}
	if !errors.Is(err, transport.ErrRefused) || !errors.Is(err, said) {
		t.Errorf("%#v does not wrap what it should", err)
	}
}

// Likewise, the error of a client that could not log in does not repeat the password.
func TestAnErrorOfTheClientRepeatsNoArguments(t *testing.T) {
	t.Parallel()
	said := errors.New("ERR unknown command 'AUTH', with args beginning with: 's3cret'")
	r := NewRunner(&fake{do: always(fmt.Errorf("%w: %w", transport.ErrRefused, said))}, time.Minute)
	_, running := r.Run(t.Context(), echo, Keys{"k"})
	for what, err := range map[string]error{"Run": running, "Ping": r.Ping(t.Context())} {
		if text := fmt.Sprint(err); strings.Contains(text, "s3cret") || !strings.Contains(text, "unknown command 'AUTH'") || !errors.Is(err, said) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// A network error tells by its method whether it is a timeout. Any other one is a connection that broke, so the round
// trip is repeated.
func TestANetworkErrorIsNotAlwaysATimeout(t *testing.T) {
	t.Parallel()
	for inner, timeout := range map[error]bool{errors.New("connection reset by peer"): false, os.ErrDeadlineExceeded: true} {
		err := fmt.Errorf("%w: %w", transport.ErrUnavailable, &net.OpError{Op: "read", Err: inner})
		if TimedOut(err) != timeout || Broken(err) == timeout {
			t.Errorf("%v: timed out %v, broken %v", err, TimedOut(err), Broken(err))
		}
	}
}

// A refusal of a round trip that may have been done before is no refusal any more, and otherwise the error that it was.
func TestARefusalThatMaybeWasDone(t *testing.T) {
	t.Parallel()
	err := AsMaybeDone(errRefused)
	if !MaybeDone(err) || errors.Is(err, transport.ErrRefused) || !errors.Is(err, errNobody) || errors.Is(err, transport.ErrClosed) {
		t.Errorf("%v is another error now", err)
	}
}

package scripting

import (
	"errors"
	"fmt"
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

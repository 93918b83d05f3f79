package scripting

import (
	"errors"
	"strings"
	"testing"

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

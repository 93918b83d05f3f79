package browser

import (
	"fmt"
	"log"
	"os"
	"testing"

	"github.com/a2139e8d/latchkey/internal/demotest"
)

// A browser serves all tests. Each of its visitors has separate cookies.
type browser interface {
	visitor(t *testing.T) (driver, error) // also opens the first window
}

var browsers = map[string]browser{}

func TestMain(m *testing.M) {
	code, err := run(m)
	if err != nil {
		log.Fatal(err)
	}
	os.Exit(code)
}

// run starts the browsers, and ends them after the tests.
func run(m *testing.M) (code int, err error) {
	defer demotest.Clean()
	for name, start := range map[string]func(profile string) (browser, func(), error){
		"chromium": startChromium,
		"firefox":  startFirefox,
	} {
		profile, err := os.MkdirTemp("", "latchkey-"+name+"-")
		if err != nil {
			return 0, err
		}
		defer os.RemoveAll(profile)
		b, end, err := start(profile)
		if end != nil {
			defer end()
		}
		if err != nil {
			return 0, fmt.Errorf("starting %s: %w", name, err)
		}
		browsers[name] = b
	}
	return m.Run(), nil
}

package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/a2139e8d/latchkey/internal/demotest"
)

// noEnv is an empty environment.
func noEnv(string) string { return "" }

// env returns an environment with one variable.
func env(variable, value string) func(string) string {
	return func(name string) string {
		if name == variable {
			return value
		}
		return ""
	}
}

// All users of a machine can read the arguments of a process, so the key and the passwords of Redis may come
// from the environment. A flag wins, even if it is empty.
func TestSecretsMayComeFromTheEnvironment(t *testing.T) {
	t.Parallel()
	const here, there = "redis://:pw@here", "redis://:pw@there"
	for args, want := range map[string]string{"": here, "-redis " + there: there, "-redis=": ""} {
		c, err := parseFlags(strings.Fields(args), env("LATCHKEY_REDIS", here), io.Discard)
		if got := strings.Join(c.redisURLs, ","); err != nil || got != want {
			t.Errorf("%q: Redis is %q, want %q (%v)", args, got, want, err)
		}
	}
	given := strings.Repeat("ff", 32)
	for args, want := range map[string]string{"": given, "-key " + demotest.Key: demotest.Key, "-key=": "a random one"} {
		c, err := parseFlags(strings.Fields(args), env("LATCHKEY_KEY", given), io.Discard)
		if got := fmt.Sprintf("%x", c.keys[0]); err != nil || got != want && (want != "a random one" || got == given) {
			t.Errorf("%q: the key is %s, want %s (%v)", args, got, want, err)
		}
	}
}

// The help names the variables. Neither the help nor an error shows their values.
func TestNoSecretIsPrinted(t *testing.T) {
	t.Parallel()
	for variable, c := range map[string]struct{ value, args, says string }{
		"LATCHKEY_REDIS": {"redis://:s3cr3t@127.0.0.1:1", "", "LATCHKEY_REDIS: "},
		"LATCHKEY_KEY":   {"s3cr3t", "", "LATCHKEY_KEY must be at least 32 bytes"},
	} {
		var help strings.Builder
		if err := run(t.Context(), []string{"-help"}, env(variable, c.value), io.Discard, &help); !errors.Is(err, flag.ErrHelp) {
			t.Errorf("-help: %v", err)
		}
		if !strings.Contains(help.String(), variable) || strings.Contains(help.String(), "s3cr3t") {
			t.Errorf("-help says:\n%s", &help)
		}
		var said strings.Builder
		err := run(t.Context(), strings.Fields(c.args), env(variable, c.value), &said, &said)
		if err == nil || !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error()+said.String(), "s3cr3t") {
			t.Errorf("the error is %v; it should say %q\n%s", err, c.says, &said)
		}
	}
}

// Every wrong flag is an error that names it.
func TestWrongFlags(t *testing.T) {
	t.Parallel()
	for args, says := range map[string]string{
		"-nonsense":                  "-nonsense",
		"-lock mutex":                `"mutex": it must be one of spin, timestamp, lease, redlock, none`,
		"-lock all":                  "-lock all is for -check",
		"-redis redis://a,redis://b": "only -lock redlock uses more than one",
		"-lock redlock -redis redis://a,redis://b": "needs an odd number of URLs, 3 or more",
		"-ttl -1s":                       "-ttl is -1s: it must be positive",
		"-lock-wait 0":                   "-lock-wait is 0s",
		"-lease 0":                       "-lease is 0s",
		"-work -1s":                      "-work is -1s",
		"-check -1":                      "-check is -1",
		"-key abcd":                      "-key must be at least 32 bytes",
		"-key " + demotest.Key + ",abcd": "-key must be at least 32 bytes",
		"-redis localhost:6379":          "must begin with redis://",
		"-redis redis://127.0.0.1:1":     "unavailable",
		"-redis redis://:s3cr#t@h:x/y":   "redis URL",
		"-addr nowhere:nothing":          "nothing",
		"serve":                          `unexpected argument "serve"`,
	} {
		t.Run(args, func(t *testing.T) {
			t.Parallel()
			var stdout, stderr strings.Builder
			err := run(t.Context(), strings.Fields(args), noEnv, &stdout, &stderr)
			if err == nil || !strings.Contains(err.Error(), says) || strings.Contains(err.Error(), "s3cr") {
				t.Errorf("error is %v; it should say %q", err, says)
			}
		})
	}
}

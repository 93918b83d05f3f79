package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/demotest"
	"github.com/a2139e8d/latchkey/internal/redistest"
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
	given := strings.Repeat("fe", 16) + strings.Repeat("ff", 16)
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
		"-ttl -1s":                         "-ttl is -1s: it must be at least 1ms",
		"-lock-wait 0":                     "-lock-wait is 0s",
		"-lease 0":                         "-lease is 0s",
		"-lock redlock -lease 1ms":         "-lease is 1ms: -lock redlock needs at least 10ms",
		"-work -1s":                        "-work is -1s",
		"-check -1":                        "-check is -1",
		"-check 10001":                     "-check is 10001: it must be at most 10000",
		"-check 0":                         "-check is 0: it must be a number of writes",
		"-key abcd":                        "-key must be at least 32 bytes",
		"-key " + demotest.Key + ",abcd":   "-key must be at least 32 bytes",
		"-key " + strings.Repeat("ab", 32): "-key is the same byte again and again",
		"-key " + demotest.Key + "," + demotest.Key: "-key has a key twice",
		"serve": `unexpected argument "serve"`,
	} {
		t.Run(args, func(t *testing.T) {
			t.Parallel()
			err := wrong(t, args)
			if _, ok := errors.AsType[usageError](err); !ok || !strings.Contains(err.Error(), says) {
				t.Errorf("error is %v; it should say %q", err, says)
			}
		})
	}
}

// An address that cannot be used is an error that names its flag. Of several Redises it names the one that does not
// work, without its password.
func TestWrongAddresses(t *testing.T) {
	t.Parallel()
	taken := demotest.Start(t).URL[len("http://"):]
	good := redistest.Real(t).URL
	for args, says := range map[string]string{
		"-addr nowhere:nothing":              "-addr: ",
		"-addr " + taken:                     "address already in use: choose another -addr, such as 127.0.0.1:0",
		"-redis localhost:6379":              "must begin with redis://",
		"-redis redis://:s3cr#t@h:x/y":       "-redis: store: redis URL",
		"-redis redis://:s3cret@127.0.0.1:1": "-redis: redis://127.0.0.1:1: store: redis is unavailable",
		"-lock redlock -redis " + good + ",redis://:s3cret@127.0.0.1:1," + good: "-redis, URL 2 of 3: redis://127.0.0.1:1: store: redis is",
		"-lock redlock -redis " + good + "," + good + ",redis://:s3cr#t@h:x":    "-redis, URL 3 of 3: store: redis URL",
	} {
		t.Run(args, func(t *testing.T) {
			t.Parallel()
			if err := wrong(t, args); err == nil || !strings.Contains(err.Error(), says) || strings.Contains(err.Error(), "s3cr") {
				t.Errorf("error is %v; it should say %q, and no secret", err, says)
			}
		})
	}
}

// wrong returns the error of a demo that should not start.
func wrong(t *testing.T, args string) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // if it serves nevertheless
	defer cancel()
	return run(ctx, strings.Fields(args), noEnv, io.Discard, io.Discard)
}

// A script can tell a wrong command line by its exit code, and the error is said once.
func TestExitCodes(t *testing.T) {
	t.Parallel()
	demo := new(demotest.Variant).Build(t)
	for _, c := range []struct {
		args string
		code int
		says string
	}{
		{"-help", 0, "openssl rand -hex 32"},
		{"-nonsense", 2, "-nonsense"},
		{"-check 0", 2, "-check is 0"},
		{"-redis redis://127.0.0.1:1", 1, "unavailable"},
	} {
		cmd := exec.CommandContext(t.Context(), demo, strings.Fields(c.args)...)
		cmd.Env = append(os.Environ(), "LATCHKEY_KEY=", "LATCHKEY_REDIS=") // not a developer's own
		out, _ := cmd.CombinedOutput()                                     // the code counts
		if code := cmd.ProcessState.ExitCode(); code != c.code || strings.Count(string(out), c.says) != 1 {
			t.Errorf("%s exits with %d, want %d, and says\n%s", c.args, code, c.code, out)
		}
	}
}

package main

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strings"
	"time"
)

// config is what the command line says.
type config struct {
	addr, redisURL, lock       string
	ttl, lockWait, lease, work time.Duration
	key                        []byte
	check                      int
}

// The ways to guard a session.
const (
	lockNone = "none"
	lockSpin = "spin"
)

var locks = []string{lockSpin, lockNone}

// errUsage marks a command line that package flag has complained about.
var errUsage = errors.New("wrong usage")

func parseFlags(args []string, stderr io.Writer) (config, error) {
	var c config
	var key string
	f := flag.NewFlagSet("demo", flag.ContinueOnError)
	f.SetOutput(stderr)
	f.StringVar(&c.addr, "addr", "127.0.0.1:8080", "listen on this `address`")
	f.StringVar(&c.redisURL, "redis", "", "use the Redis at this `URL` instead of an embedded one")
	f.StringVar(&c.lock, "lock", lockSpin, "guard sessions with this `lock`: "+strings.Join(locks, ", "))
	f.DurationVar(&c.ttl, "ttl", 30*time.Minute, "idle time-out of a session")
	f.DurationVar(&c.lockWait, "lock-wait", 10*time.Second, "longest wait for a session")
	f.DurationVar(&c.lease, "lease", 10*time.Second, "how long a killed process keeps a session shut")
	f.DurationVar(&c.work, "work", 0, "how long each /set holds its session")
	f.StringVar(&key, "key", "", "signing `key` in hex, at least 32 bytes; empty: a random one")
	f.IntVar(&c.check, "check", 0, "serve nothing; fire this `number` of concurrent writes and count what is kept")
	if err := f.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return c, err
		}
		return c, fmt.Errorf("%w: %w", errUsage, err)
	}
	switch {
	case f.NArg() > 0:
		return c, fmt.Errorf("unexpected argument %q: there are only flags, see -help", f.Arg(0))
	case !slices.Contains(locks, c.lock):
		return c, fmt.Errorf("-lock is %q: it must be one of %s", c.lock, strings.Join(locks, ", "))
	case c.check < 0:
		return c, fmt.Errorf("-check is %d: it must not be negative", c.check)
	case c.work < 0:
		return c, fmt.Errorf("-work is %v: it must not be negative", c.work)
	}
	for _, d := range []struct {
		name  string
		value time.Duration
	}{{"ttl", c.ttl}, {"lock-wait", c.lockWait}, {"lease", c.lease}} {
		if d.value <= 0 {
			return c, fmt.Errorf("-%s is %v: it must be positive", d.name, d.value)
		}
	}
	return c, c.setKey(key)
}

// setKey decodes the signing key, or makes one that lasts as long as the process.
func (c *config) setKey(key string) error {
	if key == "" {
		c.key = make([]byte, 32)
		_, _ = rand.Read(c.key) // never fails: crypto/rand ends the program first
		return nil
	}
	var err error
	if c.key, err = hex.DecodeString(key); err != nil || len(c.key) < 32 {
		// Not even a part of the key goes into the error.
		return errors.New("-key must be at least 32 bytes, written as 64 or more hexadecimal digits")
	}
	return nil
}

// redisName says which Redis is used, without its password.
func (c config) redisName() string {
	if c.redisURL == "" {
		return "embedded"
	}
	u, err := url.Parse(c.redisURL)
	if err != nil {
		return "given by -redis"
	}
	return u.Scheme + "://" + u.Host + u.Path
}

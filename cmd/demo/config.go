package main

import (
	"bytes"
	"cmp"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/url"
	"slices"
	"strings"
	"time"
)

// A config is the parsed command line.
type config struct {
	addr, lock                 string
	redisURLs                  []string // none: embedded
	redisFrom                  string   // the flag or variable that named them, for errors
	ttl, lockWait, lease, work time.Duration
	keys                       [][]byte // newest first
	checks                     bool     // -check was given
	check                      int
}

// A usageError is a mistake in the command line.
type usageError struct {
	error
	printed bool // by package flag
}

// parseFlags reads the command line. The two flags that may hold a secret may also come from the environment,
// since any user of the machine can read the arguments of a process. Package flag prints the defaults of
// flags, so these two have no default: the environment is read afterwards.
func parseFlags(args []string, getenv func(string) string, stderr io.Writer) (config, error) {
	var c config
	urls := secretFlag{name: "redis", variable: "LATCHKEY_REDIS"}
	key := secretFlag{name: "key", variable: "LATCHKEY_KEY"}
	f := flag.NewFlagSet("demo", flag.ContinueOnError)
	f.SetOutput(stderr)
	f.StringVar(&c.addr, "addr", "127.0.0.1:8080", "listen on this `address`")
	f.Var(&urls, urls.name, "use the Redis at this `URL` instead of an embedded one; for redlock an odd number of them, separated by\ncommas; the first keeps the sessions; if not given, the environment's LATCHKEY_REDIS")
	f.StringVar(&c.lock, "lock", lockSpin, "guard sessions with this `lock`: "+strings.Join(locks, ", ")+"; with -check also "+lockAll)
	f.DurationVar(&c.ttl, "ttl", 30*time.Minute, "idle timeout of a session")
	f.DurationVar(&c.lockWait, "lock-wait", 10*time.Second, "longest wait for a session")
	f.DurationVar(&c.lease, "lease", 10*time.Second, "how long a killed process keeps a session locked")
	f.DurationVar(&c.work, "work", 0, "how long each /set holds its session; those of the page do so for at least "+pageWork.String())
	f.Var(&key, key.name, "signing `key` in hex, at least 32 bytes, as openssl rand -hex 32 makes it; empty: a random one;\nseveral, separated by commas, newest first, while keys are rotated; if not given, the environment's\nLATCHKEY_KEY")
	f.IntVar(&c.check, "check", 0, "do not serve, but make this `number` of concurrent writes and count those kept")
	if err := f.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return c, err
		}
		return c, usageError{err, true}
	}
	f.Visit(func(given *flag.Flag) { c.checks = c.checks || given.Name == "check" })
	urls.orFrom(getenv)
	key.orFrom(getenv)
	c.redisFrom = urls.from
	if urls.value != "" {
		c.redisURLs = strings.Split(urls.value, ",")
	}
	if f.NArg() > 0 {
		return c, usageError{error: fmt.Errorf("unexpected argument %q: there are only flags, see -help", f.Arg(0))}
	}
	if err := cmp.Or(c.validate(), c.setKeys(key)); err != nil {
		return c, usageError{error: err}
	}
	return c, nil
}

// mostWrites of a check need about half a gigabyte.
const mostWrites = 10_000

// validate returns the first rule that c breaks.
func (c config) validate() error {
	switch {
	case c.lock == lockAll && !c.checks:
		return errors.New("-lock all is for -check: a server has one lock")
	case c.lock != lockAll && !slices.Contains(locks, c.lock):
		return fmt.Errorf("-lock is %q: it must be one of %s; with -check also %s", c.lock, strings.Join(locks, ", "), lockAll)
	case c.checks && c.check <= 0:
		return fmt.Errorf("-check is %d: it must be a number of writes, such as 100; without -check the demo serves its page", c.check)
	case c.check > mostWrites:
		return fmt.Errorf("-check is %d: it must be at most %d, since all of the writes wait at once", c.check, mostWrites)
	case c.work < 0:
		return fmt.Errorf("-work is %v: it must not be negative", c.work)
	case len(c.redisURLs) > 1 && !c.usesRedlock():
		return fmt.Errorf("only -lock redlock uses more than one URL: %s has %d", c.redisFrom, len(c.redisURLs))
	case len(c.redisURLs) > 0 && c.usesRedlock() && (len(c.redisURLs) < 3 || len(c.redisURLs)%2 == 0):
		return fmt.Errorf("-lock %s needs an odd number of URLs, 3 or more: %s has %d", c.lock, c.redisFrom, len(c.redisURLs))
	}
	for _, d := range []struct {
		name  string
		value time.Duration
	}{{"ttl", c.ttl}, {"lock-wait", c.lockWait}, {"lease", c.lease}} {
		if d.value < time.Millisecond {
			return fmt.Errorf("-%s is %v: it must be at least 1ms", d.name, d.value)
		}
	}
	// Redlock reserves a part of its lease for clocks that differ.
	if least := 10 * time.Millisecond; c.usesRedlock() && c.lease < least {
		return fmt.Errorf("-lease is %v: -lock %s needs at least %v", c.lease, c.lock, least)
	}
	return nil
}

// setKeys decodes the signing keys, or makes a random one.
func (c *config) setKeys(given secretFlag) error {
	if given.value == "" {
		key := make([]byte, 32)
		_, _ = rand.Read(key) // never fails: crypto/rand ends the program first
		c.keys = [][]byte{key}
		return nil
	}
	for digits := range strings.SplitSeq(given.value, ",") {
		switch key, err := hex.DecodeString(digits); { // the errors must not contain even a part of the key
		case err != nil || len(key) < 32:
			return fmt.Errorf("%s must be at least 32 bytes, written as 64 or more hexadecimal digits; more such keys after commas", given.from)
		case bytes.Count(key, key[:1]) == len(key):
			return fmt.Errorf("%s is the same byte again and again: openssl rand -hex 32 makes a key", given.from)
		case slices.ContainsFunc(c.keys, func(k []byte) bool { return bytes.Equal(k, key) }):
			return fmt.Errorf("%s has a key twice", given.from)
		default:
			c.keys = append(c.keys, key)
		}
	}
	return nil
}

// redisName returns which Redis is used, without passwords, for the log.
func (c config) redisName() string {
	if len(c.redisURLs) == 0 {
		return "embedded"
	}
	var names []string
	for _, at := range c.redisURLs {
		names = append(names, shown(at))
	}
	return strings.Join(names, ",")
}

// shown returns a URL that package store accepts, without user and password.
func shown(at string) string {
	u, err := url.Parse(at)
	if err != nil {
		return "a Redis"
	}
	return u.Scheme + "://" + u.Host + u.Path
}

// redisNumber returns what names the URL at an index, without showing it.
func (c config) redisNumber(i int) string {
	if len(c.redisURLs) == 1 {
		return c.redisFrom
	}
	return fmt.Sprintf("%s, URL %d of %d", c.redisFrom, i+1, len(c.redisURLs))
}

// redisKind returns the kind of Redis, for visitors, who must not see its address.
func (c config) redisKind() string {
	if len(c.redisURLs) == 0 {
		return "embedded"
	}
	return "external"
}

// isPrivate reports whether only this machine reaches the demo.
func (c config) isPrivate() bool {
	host, _, err := net.SplitHostPort(c.addr)
	return err == nil && (host == "localhost" || net.ParseIP(host).IsLoopback())
}

func (c config) usesRedlock() bool { return c.lock == lockRedlock || c.lock == lockAll }

// maxHold is long enough for the work of a request.
func (c config) maxHold() time.Duration { return max(time.Minute, c.work+10*time.Second) }

// maxWaiters is the default, or enough for all requests of a check.
func (c config) maxWaiters() int { return max(128, c.check) }

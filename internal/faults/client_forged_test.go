package faults

import (
	"context"
	"encoding/base64"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/a2139e8d/latchkey/internal/redistest"
)

// An attacker tries forged cookies while visitors work. No forged cookie reaches Redis: all commands there belong
// to the sessions of visitors.
func TestForgedCookies(t *testing.T) {
	forgeries := unlessShort(20_000, 4000)
	s := stage(t, fmt.Sprintf("%d forged cookies", forgeries), "P9: no forged cookie reaches Redis, visitors are served", setting{demos: 1, visitors: 2, clients: 2, lease: patient})
	p := redistest.NewProxy(t, s.redis)
	attacked := s.add(p.URL)
	s.close(s.demos[0])
	genuine := s.guest(attacked)
	name, value, _ := strings.Cut(genuine.cookie, "=")
	p.Forget()

	// There are no logins and logouts, so each session that existed still exists.
	s.run(func(context.Context) {
		var forging sync.WaitGroup
		const forgers = 4
		for i := range forgers {
			random, attacker := chance(15000+uint64(i)), s.guestWith("")
			forging.Go(func() {
				for n := 0; n < forgeries/forgers && !t.Failed(); n++ {
					attacker.cookie = name + "=" + forge(random, value, n)
					if n%10 == 0 {
						attacker.must("a logout with a forged cookie", attacker.post(attacked, "/logout"), http.StatusNoContent, "")
					} else {
						attacker.must("a read with a forged cookie", attacker.get(attacked, "/count"), http.StatusOK, "0")
					}
				}
			})
		}
		forging.Wait()
	})
	known := make(map[string]bool)
	for _, key := range s.redis.Keys(t) {
		known[sessionOf(key)] = true
	}
	commands := 0
	for _, c := range p.Commands() {
		if c.Name == "PING" { // PING has no key
			continue
		}
		key := c.Args[0]
		if c.Name == "EVALSHA" || c.Name == "EVAL" {
			key = c.Args[2]
		}
		if commands++; !known[sessionOf(key)] {
			t.Fatalf("a command belongs to no visitor's session: %.200q", c.Args)
		}
	}
	s.allAnswered()
	genuine.must("a write with the genuine cookie", genuine.post(attacked, "/incr"), http.StatusOK, "1")
	s.seen = fmt.Sprintf("%d commands, all of them for sessions of visitors", commands)
}

// sessionOf returns the common prefix of all keys of a session: its own ID ends with a brace.
func sessionOf(key string) string {
	session, _, _ := strings.Cut(key, "}")
	return session
}

// forge returns a cookie that differs from a genuine one.
func forge(random *rand.Rand, genuine string, n int) string {
	const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	at := random.IntN(len(genuine) - 3) // the last letters have unused bits
	switch n % 4 {
	case 0: // one letter is changed
		other := letters[random.IntN(len(letters))]
		if other == genuine[at] {
			other = '.'
		}
		return genuine[:at] + string(other) + genuine[at+1:]
	case 1: // cut off
		return genuine[:at]
	case 2: // of the right form and length
		b := make([]byte, len(genuine)*3/4)
		for i := range b {
			b[i] = byte(random.Uint32())
		}
		return base64.RawURLEncoding.EncodeToString(b)
	default: // longer
		return genuine + genuine[:at+1]
	}
}

package faults

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/a2139e8d/latchkey/internal/redistest"
)

// An attacker tries forged cookies while visitors work. None of them reaches Redis: all
// commands there are about visitors' sessions.
func TestForgedCookies(t *testing.T) {
	t.Parallel()
	forgeries := unlessShort(100_000, 20_000)
	s := stage(t, fmt.Sprintf("%d forged cookies", forgeries), "P9: none reaches Redis, visitors are served", setting{demos: 1, visitors: 2, clients: 2})
	p := redistest.NewProxy(t, s.redis)
	attacked := s.add(p.URL)
	s.close(s.demos[0])
	genuine := s.guest(attacked).cookie
	name, value, _ := strings.Cut(genuine, "=")
	p.Forget()

	// No one logs in or out, so each session that there was is still there.
	commands, strange := 0, 0
	s.run(func(context.Context) {
		var forging sync.WaitGroup
		const forgers = 4
		for i := range forgers {
			random := chance(15000 + uint64(i))
			forging.Go(func() {
				a := newAttacker(t, attacked.URL)
				defer a.Close()
				for n := 0; n < forgeries/forgers && !t.Failed(); n += len(a.cookies) {
					for i := range a.cookies {
						a.cookies[i] = name + "=" + forge(random, value, n+i)
					}
					a.attack()
				}
			})
		}
		forging.Wait()
	})
	known := make(map[string]bool)
	for _, key := range s.redis.Keys(t) {
		known[sessionOf(key)] = true
	}
	for _, c := range p.Commands() {
		key := c.Args[0]
		if c.Name == "EVALSHA" || c.Name == "EVAL" {
			key = c.Args[2]
		}
		if commands++; c.Name != "PING" && !known[sessionOf(key)] {
			if strange++; strange == 1 {
				t.Errorf("a command was about no visitor's session: %.200q", c.Args)
			}
		}
	}
	if sum := s.summary(); sum.Silent > 0 || commands < sum.Answered/4 {
		t.Errorf("%d requests of visitors were not answered; there were %d commands for %d that were", sum.Silent, commands, sum.Answered)
	}
	if got := s.guestWith(genuine).post(attacked, "/incr"); got.status != http.StatusOK {
		t.Errorf("the genuine cookie was answered with %d", got.status)
	}
	s.seen = fmt.Sprintf("%d commands, %d of them about no visitor's session", commands, strange)
}

// sessionOf returns what all keys of a session begin with: its own id ends with a brace.
func sessionOf(key string) string {
	session, _, _ := strings.Cut(key, "}")
	return session
}

// An attacker sends many requests at once on one connection, and then reads the answers,
// which is little work for itself.
type attacker struct {
	*testing.T
	net.Conn
	answers *bufio.Reader
	cookies [100]string // one for each request
}

func newAttacker(t *testing.T, site string) *attacker {
	conn, err := net.Dial("tcp", strings.TrimPrefix(site, "http://"))
	if err != nil {
		t.Error(err)
		runtime.Goexit()
	}
	return &attacker{T: t, Conn: conn, answers: bufio.NewReader(conn)}
}

// attack sends a request with each cookie. All must be answered as if there were none.
func (a *attacker) attack() {
	var requests bytes.Buffer
	for i, cookie := range a.cookies {
		what := "GET /count"
		if i%10 == 0 {
			what = "POST /logout"
		}
		fmt.Fprintf(&requests, "%s HTTP/1.1\r\nHost: site\r\nContent-Length: 0\r\nCookie: %s\r\n\r\n", what, cookie)
	}
	if _, err := a.Write(requests.Bytes()); err != nil {
		a.Error(err)
		return
	}
	for i := range a.cookies {
		res, err := http.ReadResponse(a.answers, nil)
		if err != nil {
			a.Error(err)
			return
		}
		body, err := io.ReadAll(res.Body)
		want := "200 0\n"
		if i%10 == 0 {
			want = "204 "
		}
		if got := fmt.Sprint(res.StatusCode, " ", string(body)); err != nil || got != want {
			a.Errorf("a forged cookie was answered with %.40q, %v, want %q", got, err, want)
			return
		}
	}
}

// forge returns a cookie that differs from a genuine one.
func forge(random *rand.Rand, genuine string, n int) string {
	const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	at := random.IntN(len(genuine) - 3) // the last letters have unused bits
	switch n % 4 {
	case 0: // one letter is another
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

package main

import (
	"net/url"
	"strings"
	"testing"

	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/gomodule/redigo/redis"
)

// Any user of the machine can connect to the embedded Redis, but only the demo knows its
// password. What expires there expires: its clock runs.
func TestTheEmbeddedRedisHasAPassword(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for range 2 {
		at, stop, err := startEmbedded()
		if err != nil {
			t.Fatal(err)
		}
		defer stop()
		u, err := url.Parse(at)
		if err != nil {
			t.Fatal(err)
		}
		password, _ := u.User.Password()
		if len(password) < 20 || seen[password] {
			t.Errorf("the password %q is no secret", password)
		}
		seen[password] = true
		conn, err := redis.DialURL(at)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if _, err := conn.Do("SET", "k", "v", "PX", 50); err != nil {
			t.Errorf("with the password: %v", err)
		}
		redistest.Eventually(t, "the clock runs: a key has expired", func() bool {
			n, err := redis.Int(conn.Do("EXISTS", "k"))
			return err == nil && n == 0
		})
		for _, user := range []*url.Userinfo{nil, url.UserPassword("", "guessed")} {
			u.User = user
			conn, err := redis.DialURL(u.String())
			if err == nil {
				_, err = conn.Do("PING")
				conn.Close()
			}
			if err == nil || !strings.Contains(err.Error(), "NOAUTH") && !strings.Contains(err.Error(), "WRONGPASS") {
				t.Errorf("as %v: %v", user, err)
			}
		}
	}
}

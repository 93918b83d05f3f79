package main

import (
	"net/url"
	"strings"
	"testing"

	"github.com/gomodule/redigo/redis"
)

// Any user of the machine can connect to the embedded Redis, but only the demo knows its
// password.
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
		if err := ping(at); err != nil {
			t.Errorf("with the password: %v", err)
		}
		for _, user := range []*url.Userinfo{nil, url.UserPassword("", "guessed")} {
			u.User = user
			if err := ping(u.String()); err == nil || !strings.Contains(err.Error(), "NOAUTH") && !strings.Contains(err.Error(), "WRONGPASS") {
				t.Errorf("as %v: %v", user, err)
			}
		}
	}
}

func ping(at string) error {
	conn, err := redis.DialURL(at)
	if err != nil {
		return err
	}
	defer conn.Close()
	_, err = conn.Do("PING")
	return err
}

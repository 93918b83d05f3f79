package store

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/redistest"
)

func TestParseURL(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]target{
		"redis://localhost":        {network: "tcp", address: "localhost:6379"},
		"redis://localhost:":       {network: "tcp", address: "localhost:6379"},
		"REDIS://localhost":        {network: "tcp", address: "localhost:6379"},
		"redis://[2001:db8::1]:70": {network: "tcp", address: "[2001:db8::1]:70"},
		"redis://:secret@h":        {network: "tcp", address: "h:6379", password: "secret"},
		"redis://app:secret@h:1/2": {network: "tcp", address: "h:1", username: "app", password: "secret", database: 2},
		"redis://a%40b:%2F%3A@h":   {network: "tcp", address: "h:6379", username: "a@b", password: "/:"},
		"rediss://app:secret@h/1":  {network: "tcp", address: "h:6379", username: "app", password: "secret", database: 1, tls: true},
		"valkey://:secret@h/1":     {network: "tcp", address: "h:6379", password: "secret", database: 1},
		"valkeys://h":              {network: "tcp", address: "h:6379", tls: true},
		"unix:///run/redis.sock":   {network: "unix", address: "/run/redis.sock"},
		"unix:/run/redis.sock":     {network: "unix", address: "/run/redis.sock"},
		"unix://app:secret@/run/redis.sock?db=4": {network: "unix", address: "/run/redis.sock",
			username: "app", password: "secret", database: 4},
	} {
		if got, err := parseURL(raw); got != want || err != nil {
			t.Errorf("%s:\n got %+v, %v\nwant %+v", raw, got, err, want)
		}
	}
}

// A URL often stands in a configuration that nobody may read. So the error must not repeat any part of it, least
// of all the password, which would then get into a log.
func TestOpenNeverRepeatsTheURL(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]string{
		"":                          "must begin with",
		"h0st1e:6379":               "must begin with", // read as a scheme
		"http://h0st1e":             "must begin with",
		"redis://h0st1e:1,h0st1e:2": "several hosts",
		"redis://":                  "no host",
		"redis://:s3cret@:6379":     "no host",
		"redis://us3r@h0st1e":       "without a password",
		"redis://:s3cret@h/d4ta":    "not a number",
		"unix:///x?db=d4ta":         "not a number",
		"redis://h?s3cret=1":        "unknown parameters",
		"redis://h?db=1":            "unknown parameters", // the database belongs in the path
		"redis://h?%zzs3cret":       "parameters that cannot be parsed",
		"unix://":                   "no socket",
		"unix://h0st1e/x":           "no socket", // a relative path, or one slash too few
		"redis://:s3cret@h:65536":   "port that does not exist",
		"redis://:s3cret@h:p0rt":    "percent-encoded",
		"redis://:s3c#ret@h0st1e":   "percent-encoded",
		"redis://:s3c/ret@h0st1e":   "percent-encoded",
		"redis://us3r:s3c ret@h":    "percent-encoded",
		"redis://h0st1e\x7f":        "percent-encoded",
	} {
		st, err := Open(raw, Options{})
		if err == nil {
			st.Close()
			t.Errorf("%q was opened", raw)
			continue
		}
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %q does not say %q", raw, err, want)
		}
		for _, part := range []string{"s3c", "ret@", "us3r", "h0st1e", "d4ta", "p0rt", "65536"} {
			if strings.Contains(err.Error(), part) {
				t.Errorf("%q: error %q repeats %q", raw, err, part)
			}
		}
	}
}

// An application may start before its Redis does. Ping reports whether Redis is there.
func TestOpenDoesNotConnect(t *testing.T) {
	t.Parallel()
	s := redistest.Embedded(t)
	s.Stop(t)
	st := opened(t, s.URL, patient)
	wantError(t, "Ping", st.Ping(t.Context()), ErrUnavailable)
	s.Restart(t)
	wantError(t, "Ping", st.Ping(t.Context()), nil)
	create(t, st, "data")
}

// The time that making a connection may take does not limit how long the connection lasts.
func TestOpenConnectionOutlastsItsDial(t *testing.T) {
	t.Parallel()
	server := redistest.Embedded(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	conn, err := target{network: "tcp", address: server.Addr}.pool(time.Minute, nil, nil).DialContext(ctx)
	must(t, err)
	defer conn.Close()
	<-ctx.Done()
	_, err = conn.Do("PING")
	wantError(t, "PING", err, nil)
}

// The store connects with the user, password, database or socket of the URL. An error never repeats the password.
func TestOpenConnectsAsTheURLSays(t *testing.T) {
	t.Parallel()
	s := redistest.Real(t)
	s.Do(t, "ACL", "SETUSER", "a@pp", "on", ">p:w/d", "~*", "+@all")
	for url, same := range map[string]string{
		"unix://" + s.Socket() + "?db=3":             s.URL + "/3",
		"valkey://a%40pp:p%3Aw%2Fd@" + s.Addr + "/2": s.URL + "/2",
	} {
		st := opened(t, url, patient)
		create(t, st, "1")
		save(t, st, "2")
		wantData(t, opened(t, same, patient), "2")
	}
	if keys := s.Keys(t); len(keys) != 0 {
		t.Errorf("database 0 has %q", keys)
	}
	for what, url := range map[string]string{
		"wrong password": "redis://a%40pp:s3cret@" + s.Addr,
		"unknown user":   "redis://nobody:s3cret@" + s.Addr,
		"no database":    s.URL + "/99",
	} {
		err := opened(t, url, patient).Ping(t.Context())
		wantError(t, what, err, ErrUnavailable)
		if err != nil && strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%s: error %q repeats the password", what, err)
		}
	}
}

// opened opens a store for the time of the test.
func opened(t *testing.T, url string, o Options) *Store {
	t.Helper()
	st, err := Open(url, o)
	must(t, err)
	t.Cleanup(func() { st.Close() })
	return st
}

// A server that does not know AUTH repeats its arguments. They are in no error.
func TestAPasswordIsInNoError(t *testing.T) {
	t.Parallel()
	s := redistest.Real(t, "--rename-command", "AUTH", "")
	st, err := Open(strings.Replace(s.URL, "redis://", "redis://:s3cret@", 1), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	err = st.Ping(t.Context())
	if err == nil || !strings.Contains(err.Error(), "unknown command") || strings.Contains(err.Error(), "s3cret") {
		t.Errorf("%v", err)
	}
}

package main

import (
	"context"
	"encoding/hex"
	"io"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/a2139e8d/latchkey/internal/records"
	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/store"
)

// While keys are changed, a user has a list of sessions for each key. If the operator lacks a key, list and end --user
// say that sessions were not looked at, although they have found one. end fails then: the user may still be in.
func TestAUserWhileKeysChange(t *testing.T) {
	t.Parallel()
	one, two := []byte(strings.Repeat("one!", 8)), []byte(strings.Repeat("two!", 8))
	keyID := func(key []byte) string { id, _ := records.KeyID(key); return id }
	with := func(keys ...[]byte) store.Encryption { return store.Encryption{Keys: keys, AcceptPlain: true} }
	off := store.Encryption{Keys: [][]byte{two}, WritePlain: true}
	const saved = true // the session of the process before was saved by the process after
	for name, c := range map[string]struct {
		before, after store.Encryption
		saved         bool
		keys          [][]byte // of the operator
		missed        string
	}{
		"on, without keys":     {store.Encryption{}, with(two), !saved, nil, "sealed with the key " + keyID(two) + ": " + nameTheKeys},
		"on, with the key":     {store.Encryption{}, with(two), saved, [][]byte{two}, ""},
		"changed, the old one": {with(one), with(two, one), !saved, [][]byte{one}, "sealed with the key " + keyID(two) + ", which is not in %FILE: it has the key " + keyID(one)},
		"changed, the new one": {with(one), with(two, one), saved, [][]byte{two}, "on lists that were made with a key which is not in %FILE"},
		"changed, both":        {with(one), with(two, one), saved, [][]byte{two, one}, ""},
		"off, without keys":    {with(two), off, saved, nil, "on lists that were made with a key: " + nameTheKeys},
		"off, with the key":    {with(two), off, saved, [][]byte{two}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := redistest.Real(t)
			before, after := opened(t, s.URL, store.Options{Encryption: c.before}), opened(t, s.URL, store.Options{Encryption: c.after})
			ids := []string{login(t, before, "ann", "", 1), login(t, after, "ann", "", 2)}
			begin(t, after, first, "{}") // of a guest
			if c.saved {
				if err := hold(t, after, ids[0], "").Save(t.Context(), []byte("{}")); err != nil {
					t.Fatal(err)
				}
			}
			path := ""
			for _, key := range c.keys {
				path += hex.EncodeToString(key) + "\n"
			}
			if path != "" {
				path = file(t, path)
			}
			for _, command := range []string{"list", "end"} {
				args := []string{command, "--user", "ann"}
				if path != "" {
					args = append(args, "--keys-file", path)
				}
				want, found := result{code: exitOK}, 2
				if c.missed != "" {
					found = 1
					want.stderr = "latchkey: there are sessions " + strings.ReplaceAll(c.missed, "%FILE", path) +
						"; if any are the user's, they were not " + map[string]string{"list": "looked at", "end": "ended"}[command] + "\n"
					want.code = map[string]int{"end": exitError}[command]
				}
				t.Run(command, func(t *testing.T) {
					r := call(t, s.URL, args...)
					shown := 0
					for _, id := range ids {
						shown += strings.Count(r.stdout, id)
					}
					if shown != found || r.code != want.code || r.stderr != want.stderr {
						t.Errorf("%+v, want %d sessions and %+v", r, found, want)
					}
				})
			}
		})
	}
}

// If the search for sessions with other keys fails, list and end --user say so after they have shown what they have found,
// and end fails.
func TestAUserIfTheSearchFails(t *testing.T) {
	t.Parallel()
	s := redistest.Real(t)
	st := opened(t, s.URL, store.Options{})
	ann := login(t, st, "ann", "", 1)
	s.Do(t, "ACL", "SETUSER", "ops", "on", ">pw", "~*", "&*", "+@all", "-scan")
	url := "redis://ops:pw@" + s.Addr
	const says = "latchkey: whether sessions are sealed with other keys is not known: "
	for command, code := range map[string]int{"list": exitOK, "end": exitError} {
		r := call(t, url, command, "--user", "bob")
		if r.code != code || !strings.HasPrefix(r.stderr, says) || !strings.Contains(r.stderr, "NOPERM") || r.stdout == "" {
			t.Errorf("%s: %+v", command, r)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var stdout, stderr strings.Builder
	shown := writing{&stdout, cancel} // as if the operator saw it, and pressed Ctrl-C
	code := run(ctx, []string{"list", "--user", "ann", "--redis", s.URL}, func(string) string { return "" }, nil, shown, &stderr)
	if code != exitError || stderr.String() != "latchkey: interrupted\n" || !strings.Contains(stdout.String(), ann) {
		t.Errorf("interrupted: exit %d, %s%s", code, stdout.String(), stderr.String())
	}
}

// A writing calls a function when something has been written.
type writing struct {
	io.Writer
	then func()
}

func (w writing) Write(b []byte) (int, error) {
	defer w.then()
	return w.Writer.Write(b)
}

// The search looks at a limited number of keys, whoever owns them.
func TestTheSearchIsBounded(t *testing.T) {
	t.Parallel()
	s := redistest.Real(t)
	s.Do(t, "EVAL", "for i = 1, ARGV[1] do redis.call('SET', 'other:' .. i, '') end", 0, 3*searchKeys)
	r := call(t, s.URL, "list", "--user", "ann")
	scans := regexp.MustCompile(`cmdstat_scan:calls=(\d+)`).FindStringSubmatch(string(s.Do(t, "INFO", "commandstats").([]byte)))
	if r.code != exitOK || scans == nil {
		t.Fatalf("%+v, %q", r, scans)
	}
	if n, _ := strconv.Atoi(scans[1]); n > searchKeys/batch+2 {
		t.Errorf("the search has looked at %d batches", n)
	}
}

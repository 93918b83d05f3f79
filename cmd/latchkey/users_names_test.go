package main

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/a2139e8d/latchkey/internal/records"
	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/store"
	"github.com/a2139e8d/latchkey/store/rueidisstore"
)

// counted returns what users knows before it reads names, and what it prints on stderr.
func counted(t *testing.T, args ...string) (*census, *bytes.Buffer) {
	t.Helper()
	o, err := find("users").parse(args, func(string) string { return "" })
	if err != nil {
		t.Fatal(err)
	}
	r, err := connect(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.client.Close)
	st, err := rueidisstore.Open(r.option, r.o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { st.Close() })
	var stderr bytes.Buffer
	out := streams{Writer: bufio.NewWriter(io.Discard), stderr: &stderr}
	c := &census{job: &job{ctx: t.Context(), options: o, redis: r, out: out}, store: st, bar: newProgress(&stderr, 0)}
	if _, err := c.lookAtAll(func(n *node, _ func(int)) error { return c.count(n) }); err != nil {
		t.Fatal(err)
	}
	c.cut(c.limit)
	return c, &stderr
}

// If a session ends or gets a new ID between the look at its user's list and the look at its record, the user still
// has a name, and no hint says that the keys are wrong.
func TestUsersWhoseSessionsEndMeanwhile(t *testing.T) {
	t.Parallel()
	s := redistest.Real(t)
	key := []byte(strings.Repeat("key!", 8))
	st := opened(t, s.URL, store.Options{Encryption: store.Encryption{Keys: [][]byte{key}}})
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	var ended []string
	for _, user := range []string{"another", "none", "renewed", "expired", "same"} {
		ended = append(ended, login(t, st, user, "", 1))
	}
	login(t, st, "another", "", 3)
	login(t, st, "expired", "", 2)
	newID := strings.TrimSuffix(ended[2], ended[2][tagLength+1:]) + "AAAAAAAAAAA"
	large := login(t, st, "large", "", 1)
	must(hold(t, st, large, "").Save(t.Context(), []byte(`{"x":"`+strings.Repeat("x", 2*nameSize)+`"}`)))

	c, stderr := counted(t, "--redis", s.URL, "--keys-file", file(t, hex.EncodeToString(key)))
	must(records.Of(st).End(t.Context(), ended[0]))
	must(records.Of(st).End(t.Context(), ended[1]))
	must(hold(t, st, ended[2], "").Renew(t.Context(), newID, []byte("{}")))
	s.Do(t, "DEL", keyOf(ended[3]))
	must(c.name())
	c.hint()
	found := loggedInReport{Users: c.top}.summary()
	if slices.Sort(found); !slices.Equal(found, []string{"another:1", "expired:1", "large:1", "renewed:1", "same:1"}) {
		t.Errorf("%q", found)
	}
	if c.users != 5 || c.sessions != 5 || stderr.Len() > 0 {
		t.Errorf("%d users, %d sessions; %s", c.users, c.sessions, stderr)
	}

	// If the keys are really wrong, the hint says so, but only for the users whom they hide.
	c, stderr = counted(t, "--redis", s.URL, "--keys-file", file(t, strings.Repeat("abcd", 16)))
	must(records.Of(st).End(t.Context(), newID))
	must(c.name())
	c.hint()
	if len(c.top) != 4 || stderr.String() != "latchkey: 4 users are shown by their tags: the keys are not those of the sessions\n" {
		t.Errorf("%d users; %s", len(c.top), stderr)
	}
}

// If a user is counted again, a key that cannot be read is still one key.
func TestUsersWithUnreadableKeysWhoAreCountedAgain(t *testing.T) {
	t.Parallel()
	s := redistest.Real(t)
	key := []byte(strings.Repeat("key!", 8))
	st := opened(t, s.URL, store.Options{Encryption: store.Encryption{Keys: [][]byte{key}}})
	newest, unreadable := login(t, st, "ann", "", 1), login(t, st, "ann", "", 2)
	login(t, st, "ann", "", 3)
	lost := login(t, st, "bob", "", 1)
	s.Do(t, "SET", keyOf(unreadable), "junk")

	c, stderr := counted(t, "--redis", s.URL, "--keys-file", file(t, hex.EncodeToString(key)))
	if err := records.Of(st).End(t.Context(), newest); err != nil {
		t.Fatal(err)
	}
	s.Do(t, "DEL", keyOf(lost))
	s.Do(t, "RPUSH", keyOf(lost), "junk") // which is found when bob is counted again
	if err := c.name(); err != nil {
		t.Fatal(err)
	}
	c.hint()
	if c.sessions != 1 || c.unreadable != 2 || !slices.Equal(c.unreadableKeys, []string{keyOf(unreadable), keyOf(lost)}) {
		t.Errorf("%d sessions, and %d keys cannot be read: %s", c.sessions, c.unreadable, stderr)
	}
}

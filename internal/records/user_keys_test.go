package records

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/locker/transport"
)

// P14, while keys change: processes of both steps list and end a session that a process of either step has begun,
// whatever tag it has.
func TestAUsersSessionsAreFoundWhileKeysChange(t *testing.T) {
	t.Parallel()
	for name, change := range keyChanges {
		t.Run(name, fakeTime(func(t *testing.T, s *redistest.Server) {
			for i, e := range change.steps[1:] {
				before, after := by(t, s, change.steps[i]), by(t, s, e)
				for _, st := range []*Engine{before, after} {
					kept, a, b := login(t, before, "ann", 1), login(t, before, "ann", 2), login(t, after, "ann", 3)
					bob := login(t, before, "bob", 1)
					wantListed(t, st, "ann", kept, a, b)
					wantAlive(t, st, a, "0")
					ended, err := st.EndUser(t.Context(), "ann", kept)
					if slices.Sort(ended); err != nil || !slices.Equal(ended, slices.Sorted(slices.Values([]string{a, b}))) {
						t.Errorf("step %d: EndUser = %q, %v", i, ended, err)
					}
					for _, id := range []string{a, b} {
						wantOver(t, before, id)
						wantOver(t, after, id)
					}
					wantListed(t, st, "ann", kept)
					must(t, st.End(t.Context(), kept))
					wantListed(t, st, "ann")
					wantListed(t, st, "bob", bob)
					s.Do(t, "FLUSHALL")
				}
			}
		}))
	}
}

// wantListed checks which sessions of a user are listed, in any order, and what the list shows of them.
func wantListed(t *testing.T, st *Engine, user string, ids ...string) {
	t.Helper()
	listed, err := st.ListUser(t.Context(), user, Terms{})
	must(t, err)
	var got []string
	for _, l := range listed {
		got = append(got, l.ID)
		if l.User != user || l.Device != `Firefox, "Berlin"` || l.Created.IsZero() {
			t.Errorf("%+v", l)
		}
	}
	slices.Sort(ids)
	if slices.Sort(got); !slices.Equal(got, ids) {
		t.Errorf("%s has %q, want %q", user, got, ids)
	}
}

// A Renew moves a session to the tag of the newest key, from one list to another. If all sessions of the user are
// ended meanwhile, the session does not escape between the two lists. It may move in either direction, since
// processes of both steps run.
func TestARenewToAnotherKeyDoesNotOutliveTheEnd(t *testing.T) {
	t.Parallel()
	for direction, keys := range map[string][2][]byte{"forth": {oldKey, newKey}, "back": {newKey, oldKey}} {
		t.Run(direction, fakeTime(func(t *testing.T, s *redistest.Server) {
			from, to := onPool(s.Pool(t, 8), encrypted(keys[0], keys[1])), onPool(s.Pool(t, 8), encrypted(keys[1], keys[0]))
			if _, err := from.EndUser(t.Context(), "nobody"); err != nil { // from now on Redis has the script
				t.Fatal(err)
			}
			for i, o := range []Options{encrypted(oldKey, newKey), encrypted(newKey, oldKey)} {
				id, next := login(t, from, "ann", 2*i), idOf(to, "ann", 2*i+1)
				h := takeID(t, to, id)
				ending := New(&interrupted{Client: transport.NewRedigo(s.Pool(t, 8), 20*time.Second), do: func() {
					_ = h.Renew(t.Context(), next, []byte("1"))
				}}, o)
				if _, err := ending.EndUser(t.Context(), "ann"); err != nil {
					t.Fatal(err)
				}
				wantListed(t, to, "ann")
				wantOver(t, to, id)
				if _, err := to.Load(t.Context(), next, Terms{}); err == nil {
					t.Errorf("with options %d the session is alive under its new ID", i)
				}
			}
		}))
	}
}

// An interrupted client calls do after the first round trip that it carries.
type interrupted struct {
	transport.Client
	do func()
}

func (b *interrupted) Do(ctx context.Context, key string, commands ...transport.Command) ([]any, error) {
	replies, err := b.Client.Do(ctx, key, commands...)
	if do := b.do; do != nil {
		b.do = nil
		do()
	}
	return replies, err
}

// With encryption, no key or value in Redis contains the user or the device, nor anything that can be computed
// from the name without a key. Without encryption, the tag can be computed from the name, and the record can be
// read.
func TestRedisDoesNotKnowTheUser(t *testing.T) {
	t.Parallel()
	const user = "ann@example.org"
	for name, options := range map[string]Options{"encrypted": encrypted(newKey), "plain": patient} {
		t.Run(name, fakeTime(func(t *testing.T, s *redistest.Server) {
			st := onPool(s.Pool(t, 8), options)
			id := login(t, st, user, 1)
			h, _, err := st.Take(t.Context(), id, Terms{Label: "POST /login"}) // so that there is a lock, too
			must(t, err)
			defer h.Release(t.Context())
			all := everythingIn(t, s)
			if want := 3; strings.Count(all, base64.RawURLEncoding.EncodeToString(tagOf(st, user))) < want {
				t.Fatalf("record, lock or list is missing: %q", all)
			}
			for what, found := range map[string]bool{
				"the user":   strings.Contains(all, user),
				"the device": strings.Contains(all, "Firefox"),
				"a hash of the user": anyHashIn(all, user) ||
					anyHashIn(all, DefaultPrefix+"\x00"+user),
			} {
				if encrypted := name == "encrypted"; found == encrypted {
					t.Errorf("%s is found: %v, in %q", what, found, all)
				}
			}
		}))
	}
}

func tagOf(st *Engine, user string) []byte {
	tag := st.Tag(user)
	return tag[:]
}

// anyHashIn reports whether text contains the SHA-256 of name, or the beginning of it, in any form.
func anyHashIn(text, name string) bool {
	sum := sha256.Sum256([]byte(name))
	begins := sum[:tagBytes]
	return slices.ContainsFunc([]string{string(begins), hex.EncodeToString(begins), base64.RawURLEncoding.EncodeToString(begins)},
		func(form string) bool { return strings.Contains(text, form) })
}

// everythingIn returns all keys and values of a Redis.
func everythingIn(t *testing.T, s *redistest.Server) (all string) {
	t.Helper()
	for _, key := range s.Keys(t) {
		all += key + "\n"
		if strings.HasSuffix(key, ".list") {
			all += fmt.Sprintf("%s\n", s.Do(t, "ZRANGE", key, 0, -1, "WITHSCORES"))
		} else {
			value, _ := s.Get(t, key)
			all += value + "\n"
		}
	}
	return all
}

package store

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/a2139e8d/latchkey/locker/transport"
	"github.com/alicebob/miniredis/v2"
	"github.com/alicebob/miniredis/v2/server"
	"github.com/gomodule/redigo/redis"
)

// A week of logins, requests, new ids, logouts and Remember, of sessions that time out and of users
// who never return: no key outlives its session's Lifetime by more than an hour, and a user's list
// and mark not that of the last session.
func TestNothingOfUsersIsLeft(t *testing.T) {
	t.Parallel()
	m := miniredis.NewMiniRedis()
	if err := m.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Close)
	seed := rand.Uint64()
	synctest.Test(t, func(t *testing.T) {
		w := &week{T: t, random: rand.New(rand.NewPCG(seed, 0)), ends: make(map[string]time.Time), alive: make(map[string][]string)}
		w.client = &inside{mini: m, last: time.Now()}
		w.st = NewOn(w.client, patient)
		for range 7 * 24 {
			for range 20 {
				w.request(fmt.Sprintf("user%d", w.random.IntN(20)))
				lapse(3 * time.Minute)
			}
			w.wantNothingOld()
		}
		lapse(5*24*time.Hour + time.Hour) // the longest
		w.wantNothingOld()
		if len(w.client.keys()) > 0 || w.most < 40 {
			t.Errorf("seed %d: in the end there are %q; at most there were %d keys", seed, w.client.keys(), w.most)
		}
		_ = w.st.Close()
	})
}

// A week has the sessions of some users.
type week struct {
	*testing.T
	st     *Store
	client *inside
	random *rand.Rand
	alive  map[string][]string  // the ids that a user may have, oldest first
	ends   map[string]time.Time // when a session, or all of a user, are over at the latest, by key
	n      int
	most   int
}

// weekly are the terms: two hours idle, a day at most.
var weekly = Terms{TTL: 2 * time.Hour, Lifetime: 24 * time.Hour, MaxSessions: 12}

// request does what a user may do.
func (w *week) request(user string) {
	ctx, ids := w.Context(), w.alive[user]
	if len(ids) == 0 || w.random.IntN(5) == 0 {
		record := Record{Data: []byte("1"), Created: time.Now(), User: user}
		if w.random.IntN(5) == 0 {
			record.Own = &Times{Until: time.Now().Add(5 * 24 * time.Hour)}
		}
		id := w.begins(user, &record)
		wantError(w.T, "a login", w.st.CreateRecord(ctx, id, record, weekly), nil)
		return
	}
	switch i := w.random.IntN(len(ids)); w.random.IntN(12) {
	case 0:
		_ = w.st.End(ctx, ids[i]) // it may be over
	case 1:
		_, err := w.st.EndUser(ctx, user, ids[i])
		wantError(w.T, "EndUser", err, nil)
	case 2:
		if w.random.IntN(3) == 0 {
			_, err := w.st.EndUser(ctx, user)
			wantError(w.T, "EndUser", err, nil)
			w.alive[user] = nil
		}
	default:
		h, err := w.st.Take(ctx, ids[i], weekly)
		switch {
		case err != nil:
			w.alive[user] = append(ids[:i], ids[i+1:]...)
		case w.random.IntN(4) == 0:
			wantError(w.T, "Renew", h.Renew(ctx, w.begins(user, &h.Record), []byte("2")), nil)
		default:
			wantError(w.T, "Save", h.Save(ctx, []byte("3")), nil)
		}
	}
}

// begins notes when a session that begins now is over at the latest, and returns its id.
func (w *week) begins(user string, r *Record) (id string) {
	w.n++
	id = idOf(w.st, user, w.n)
	w.alive[user] = append(w.alive[user], id)
	over := r.Created.Add(weekly.Lifetime)
	if r.Own != nil {
		over = r.Own.Until
	}
	tag, _, _ := cutTag(id)
	for _, key := range []string{w.st.recordKey(id), w.st.listKey(tag), w.st.markKey(tag)} {
		if w.ends[key].Before(over) {
			w.ends[key] = over
		}
	}
	return id
}

func (w *week) wantNothingOld() {
	keys := w.client.keys()
	w.most = max(w.most, len(keys))
	for _, key := range keys {
		record, _, _ := strings.Cut(key, ".lock")
		if over := w.ends[record]; time.Since(over) > time.Hour {
			w.Fatalf("%s is there, which should have been over %v ago", key, time.Since(over))
		}
	}
}

// inside is a client of an embedded Redis that needs no network, so that it can be used where time
// is not real. The keys age as that passes.
type inside struct {
	mini *miniredis.Miniredis
	mu   sync.Mutex
	last time.Time
}

func (c *inside) age() {
	passed := time.Since(c.last)
	c.last = c.last.Add(passed)
	c.mini.FastForward(passed)
}

func (c *inside) keys() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.age()
	return c.mini.Keys()
}

// Do implements [transport.Client].
func (c *inside) Do(_ context.Context, _ string, commands ...transport.Command) (replies []any, _ error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.age()
	for _, command := range commands {
		args := make([]string, len(command))
		for i, arg := range command {
			if b, raw := arg.([]byte); raw {
				args[i] = string(b)
			} else {
				args[i] = fmt.Sprint(arg)
			}
		}
		var out bytes.Buffer
		peer := server.NewPeer(bufio.NewWriter(&out))
		c.mini.Server().Dispatch(peer, args)
		peer.Flush()
		reply, err := redis.NewConn(written{Reader: &out}, 0, 0).Receive()
		if err != nil {
			reply = err
		}
		replies = append(replies, reply)
	}
	return replies, nil
}

// Subscribe implements [transport.Client]: nobody waits here.
func (c *inside) Subscribe(context.Context, string) (transport.Subscription, error) {
	return nil, ErrUnavailable
}

// written is a connection from which something is read.
type written struct {
	net.Conn
	Reader *bytes.Buffer
}

func (w written) Read(p []byte) (int, error)  { return w.Reader.Read(p) }
func (w written) Write(p []byte) (int, error) { return len(p), nil }

func (w written) SetReadDeadline(time.Time) error { return nil }

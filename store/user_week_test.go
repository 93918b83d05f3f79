package store

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/redistest"
)

// Days of logins, requests, new ids, logouts and Remember, of sessions that time out and of users
// who never return: no key outlives its session's Lifetime by more than an hour, and a user's list
// and mark not that of the last session.
func TestNothingOfUsersIsLeft(t *testing.T) {
	inFakeTime(t, func(t *testing.T, s *redistest.Server) {
		seed := rand.Uint64()
		w := &week{T: t, s: s, st: process(t, s), random: rand.New(rand.NewPCG(seed, 0)),
			ends: make(map[string]time.Time), alive: make(map[string][]string)}
		for range 3 * 24 {
			for range 20 {
				w.request(fmt.Sprintf("user%d", w.random.IntN(20)))
				lapse(3 * time.Minute)
			}
			w.wantNothingOld()
		}
		lapse(5*24*time.Hour + time.Hour) // the longest
		w.wantNothingOld()
		if keys := s.Keys(t); len(keys) > 0 || w.most < 40 {
			t.Errorf("seed %d: in the end there are %q; at most there were %d keys", seed, keys, w.most)
		}
	})
}

// A week has the sessions of some users.
type week struct {
	*testing.T
	s      *redistest.Server
	st     *Store
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
	keys := w.s.Keys(w.T)
	w.most = max(w.most, len(keys))
	for _, key := range keys {
		record, _, _ := strings.Cut(key, ".lock")
		if over := w.ends[record]; time.Since(over) > time.Hour {
			w.Fatalf("%s is there, which should have been over %v ago", key, time.Since(over))
		}
	}
}

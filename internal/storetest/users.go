package storetest

import (
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/records"
	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/store"
)

// idOf returns the ID of a user's n-th session.
func idOf(st *records.Engine, user string, n int) string {
	tag := st.Tag(user)
	return base64.RawURLEncoding.EncodeToString(tag[:]) + fmt.Sprintf(".%011d", n)
}

// liveAsUser does everything that can happen to the sessions of a user, as one process. n is a number
// that no earlier life had.
func (s *site) liveAsUser(st *records.Engine, n int) error {
	ctx, terms := s.Context(), records.Terms{}
	n *= 10
	guest, first, second, third := fmt.Sprintf("guest%d", n), idOf(st, "ann", n), idOf(st, "ann", n+1), idOf(st, "ann", n+2)
	var h *records.Hold
	taken := func(id, want string) (err error) {
		if h, _, err = st.Take(ctx, id, terms); err == nil && string(h.Record.Encoded()) != want {
			h.Release(ctx)
			err = fmt.Errorf("took %.20q, want %.20q", h.Record.Encoded(), want)
		}
		return err
	}
	over := func(id string) error {
		_, err := st.Load(ctx, id, terms)
		if err = mustBe(err, store.ErrGone); err == nil {
			_, _, err = st.Take(ctx, id, terms)
			err = mustBe(err, store.ErrGone)
		}
		return err
	}
	listed := func(want ...string) error {
		list, err := st.ListUser(ctx, "ann", terms)
		var ids []string
		for _, l := range list {
			ids = append(ids, l.ID)
		}
		slices.Sort(ids)
		if err == nil && !slices.Equal(ids, want) {
			err = fmt.Errorf("listed %q, want %q", ids, want)
		}
		return err
	}
	for i, step := range []func() error{
		func() error { return st.Create(ctx, guest, []byte("1"), terms) },
		func() error { return taken(guest, "1") },
		func() error { h.Record.User = "ann"; return h.Renew(ctx, first, []byte("2")) },
		func() error { return taken(first, "2") },
		func() error { return h.Save(ctx, []byte(strings.Repeat("3", 5000))) },
		func() error { return taken(first, strings.Repeat("3", 5000)) },
		func() error { return h.Save(ctx, []byte("4")) },
		func() error {
			r, err := st.Load(ctx, first, terms)
			if err == nil {
				_, err = st.SaveLoaded(ctx, first, r, content("5"), terms)
			}
			return err
		},
		func() error {
			return st.CreateRecord(ctx, second, records.Record{Data: []byte("6"), Created: time.Now(), User: "ann"}, terms)
		},
		func() error { return listed(first, second) },
		func() error { return taken(second, "6") },
		func() error { return h.Renew(ctx, third, []byte("7")) },
		func() error { return over(second) },
		func() error { return st.End(ctx, first) },
		func() error { return over(first) },
		func() error { return listed(third) },
		func() error { _, err := st.EndUser(ctx, "ann", third); return err },
		func() error { return taken(third, "7") },
		func() error { _, err := st.EndUser(ctx, "ann"); return err },
		func() error { return mustBe(h.Save(ctx, []byte("8")), store.ErrLost) },
		func() error { return over(third) },
		func() error { return listed() },
	} {
		if err := step(); err != nil {
			return fmt.Errorf("step %d: %w", i, err)
		}
	}
	return nil
}

type content string

func (c content) Size() int                { return len(c) }
func (c content) AppendTo(b []byte) []byte { return append(b, c...) }

// A user logs in twice, and ends one session, all other sessions, and all sessions.
func users(s *site) {
	if err := s.liveAsUser(s.process(patient), 0); err != nil {
		s.Error(err)
	}
}

// Users' sessions work likewise if a connection breaks. Nothing fails, whichever command breaks it, and whether
// or not Redis has done the command.
func usersOnBadNetwork(s *site) {
	st, p := s.tapped(patient)
	lives := 0
	live := func(fault redistest.Fault, at int64) (commands int64, err error) {
		var n atomic.Int64 // a late command of the life before is counted there
		p.Inject(func(c redistest.Command) redistest.Fault {
			if isStores(c) && n.Add(1) == at {
				return fault
			}
			return redistest.Pass
		})
		defer p.Inject(nil)
		lives++
		err = s.liveAsUser(st, lives)
		return n.Load(), err
	}
	all := int64(0)
	for range 2 { // in the first life, Redis gets the scripts
		var err error
		if all, err = live(redistest.Pass, 0); err != nil {
			s.Fatal(err)
		}
	}
	for name, fault := range map[string]redistest.Fault{
		"the reply is lost":   redistest.DropReply,
		"the command is lost": redistest.DropCommand,
	} {
		for n := int64(1); n <= all; n++ {
			if _, err := live(fault, n); err != nil {
				s.Errorf("command %d of %d, %s: %v", n, all, name, err)
			}
		}
	}
}

// RunUsers checks, also over RESP3 with its other types of replies, that users' sessions work, and that
// taking or loading one needs no script.
func RunUsers(t *testing.T, open Open) {
	t.Helper()
	s := &site{T: t, open: open, redis: redistest.Real(t)}
	if err := s.liveAsUser(s.process(patient), 0); err != nil {
		s.Fatal(err)
	}
	s.redis = redistest.Real(t) // a server on which no background cleanup is under way
	st := s.process(patient)
	id := idOf(st, "bob", 1)
	err := st.CreateRecord(s.Context(), id, records.Record{Data: []byte("1"), Created: time.Now(), User: "bob"}, records.Terms{})
	if err != nil {
		s.Fatal(err)
	}
	s.redis.Do(s, "CONFIG", "RESETSTAT")
	_, err = st.Load(s.Context(), id, records.Terms{TTL: time.Minute})
	s.wantError("Load", err, nil)
	h, _, err := st.Take(s.Context(), id, records.Terms{})
	s.wantError("Take", err, nil)
	if stats := fmt.Sprintf("%s", s.redis.Do(s, "INFO", "commandstats")); strings.Contains(stats, "cmdstat_eval") {
		s.Errorf("scripts were run:\n%s", stats)
	}
	h.Release(s.Context())
}

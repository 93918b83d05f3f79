package records

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/locker/transport"
)

// A crossing client exchanges one reply of a call with that of another call, which was sent at the same time, as
// if both had been in one write.
type crossing struct {
	transport.Client
	at    int // which reply of each call
	after int // how many calls of each visitor come before, in pairs
	calls atomic.Int32
	first chan []any
	done  chan struct{}
}

func (c *crossing) Do(ctx context.Context, key string, commands ...transport.Command) ([]any, error) {
	replies, err := c.Client.Do(ctx, key, commands...)
	switch n := int(c.calls.Add(1)) - 1; {
	case n >= 2*(c.after+1):
	case n%2 == 0:
		c.first <- replies
		<-c.done
	default:
		others := <-c.first
		if n/2 == c.after && c.at < min(len(others), len(replies)) {
			others[c.at], replies[c.at] = replies[c.at], others[c.at]
		}
		c.done <- struct{}{}
	}
	return replies, err
}

// twoVisitors begins the sessions whose replies change places. It returns what each session holds.
func twoVisitors(t *testing.T, st *Engine, ofUsers bool) map[string]string {
	t.Helper()
	if !ofUsers {
		must(t, st.Create(t.Context(), theID, []byte("1"), Terms{}))
		must(t, st.Create(t.Context(), newID, []byte("2"), Terms{}))
		return map[string]string{theID: "1", newID: "2"}
	}
	visitors := make(map[string]string)
	for n, user := range []string{"ann", "bob"} {
		r := recordOfUser(user)
		r.Data = fmt.Append(nil, n)
		must(t, st.CreateRecord(t.Context(), idOf(st, user, n), r, Terms{}))
		visitors[idOf(st, user, n)] = string(r.Data)
	}
	return visitors
}

// P11: replies to two visitors' calls change places. No visitor sees another's session, and no request fails.
func TestRepliesThatChangePlaces(t *testing.T) {
	t.Parallel()
	reads := map[string]func(ctx context.Context, st *Engine, id string) (Record, error){
		"Load": func(ctx context.Context, st *Engine, id string) (Record, error) {
			return st.Load(ctx, id, Terms{TTL: time.Hour})
		},
		"Peek": func(ctx context.Context, st *Engine, id string) (Record, error) {
			r, _, err := st.Peek(ctx, id, Terms{})
			return r, err
		},
		"Take": func(ctx context.Context, st *Engine, id string) (Record, error) {
			h, _, err := st.Take(ctx, id, Terms{})
			if err != nil {
				return Record{}, err
			}
			defer h.Release(ctx)
			return h.Record, nil
		},
	}
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		for name, read := range reads {
			for at := range 3 {
				for _, ofUsers := range []bool{false, true} {
					s.Do(t, "FLUSHALL")
					visitors := twoVisitors(t, process(t, s), ofUsers)
					client := transport.NewRedigo(s.Pool(t, 8), patient.Timeout)
					st := New(&crossing{Client: client, at: at, first: make(chan []any), done: make(chan struct{})}, patient)
					var all sync.WaitGroup
					for id, want := range visitors {
						all.Go(func() {
							if r, err := read(t.Context(), st, id); string(r.Encoded()) != want || err != nil {
								t.Errorf("%s, reply %d, of users %v: %s has %q, %v; want %q", name, at, ofUsers, id, r.Encoded(), err, want)
							}
						})
					}
					all.Wait()
					must(t, client.Close())
				}
			}
		}
	})
}

// A record that a person has copied to another key cannot be read there. It can be replaced, like any other
// record that cannot be read.
func TestAKeyThatWasCopied(t *testing.T) {
	inFakeTime(t, func(t *testing.T, s *redistest.Server) {
		st := process(t, s)
		copied := func(from, to string) {
			t.Helper()
			value, _ := s.Get(t, st.recordKey(from))
			s.Do(t, "SET", st.recordKey(to), value, "PX", time.Hour.Milliseconds())
		}
		for name, ids := range map[string][2]string{
			"of guests":   {newID, theID},
			"of one user": {idOf(st, "ann", 1), idOf(st, "ann", 2)},
		} {
			terms := Terms{TTL: time.Hour}
			begin := func() Record {
				s.Do(t, "FLUSHALL")
				for n, id := range ids {
					r := Record{Data: fmt.Append(nil, n), Created: time.Now()}
					if name == "of one user" {
						r.User, r.Device = "ann", `Firefox, "Berlin"`
					}
					must(t, st.CreateRecord(t.Context(), id, r, terms))
				}
				r, err := st.Load(t.Context(), ids[1], terms)
				must(t, err)
				copied(ids[0], ids[1])
				return r
			}
			for path, read := range map[string]func() (Record, error){
				"Load": func() (Record, error) { return st.Load(t.Context(), ids[1], terms) },
				"Load by script": func() (Record, error) {
					return st.Load(t.Context(), ids[1], Terms{TTL: time.Hour, GuestTTL: time.Minute})
				},
				"Peek": func() (Record, error) {
					r, _, err := st.Peek(t.Context(), ids[1], terms)
					return r, err
				},
			} {
				begin()
				r, err := read()
				wantError(t, name+": "+path, err, ErrCorrupt)
				if r.Data != nil || r.User != "" {
					t.Errorf("%s: %s returns %q of %q", name, path, r.Data, r.User)
				}
			}
			for path, by := range map[string]struct {
				st    *Engine
				terms Terms
			}{
				"Take":            {st, terms},
				"Take by script":  {st, Terms{TTL: patient.Lease, Lifetime: time.Hour}},
				"Take in a queue": {process(t, s), terms},
			} {
				begin()
				var holder *Hold
				if path == "Take in a queue" {
					var err error
					holder, _, err = st.Take(t.Context(), ids[1], terms)
					wantError(t, name+": "+path, err, ErrCorrupt)
					time.AfterFunc(time.Second, func() { holder.Release(t.Context()) })
				}
				h, _, err := by.st.Take(t.Context(), ids[1], by.terms)
				wantError(t, name+": "+path, err, ErrCorrupt)
				if h == nil || h.Record.Data != nil || h.Record.User != "" {
					t.Fatalf("%s: %s returns %+v", name, path, h)
				}
				if name == "of guests" {
					must(t, h.Save(t.Context(), []byte("anew")))
				} else {
					must(t, h.Renew(t.Context(), newID, []byte("anew")))
				}
				if r, err := st.Load(t.Context(), newOr(name == "of guests", ids[1]), terms); string(r.Data) != "anew" || err != nil {
					t.Errorf("%s: replaced after %s, the record has %q, %v", name, path, r.Data, err)
				}
			}
			_, err := st.SaveLoaded(t.Context(), ids[1], begin(), text("3"), terms)
			wantError(t, name+": SaveLoaded", err, ErrConflict)
		}
	})
}

// newOr returns the ID under which a replaced session goes on.
func newOr(same bool, id string) string {
	if same {
		return id
	}
	return newID
}

// A record at the key of another user or another store is detected as well.
func TestARecordIsBoundToItsKey(t *testing.T) {
	inFakeTime(t, func(t *testing.T, s *redistest.Server) {
		st, other := process(t, s), onPool(s.Pool(t, 8), Options{Prefix: "other:", Timeout: patient.Timeout})
		create(t, st, "1")
		id := login(t, st, "ann", 1)
		bobs := idOf(st, "bob", 1)
		login(t, st, "bob", 2)
		for from, to := range map[string]string{theRecord: other.recordKey(theID), st.recordKey(id): st.recordKey(bobs)} {
			value, _ := s.Get(t, from)
			s.Do(t, "SET", to, value, "PX", time.Hour.Milliseconds())
		}
		mark, _ := s.Get(t, st.markKey(id[:16]))
		s.Do(t, "SET", st.markKey(bobs[:16]), mark, "PX", time.Hour.Milliseconds()) // without it the session would have ended
		for _, read := range []func() (Record, error){
			func() (Record, error) { return other.Load(t.Context(), theID, Terms{}) },
			func() (Record, error) { return st.Load(t.Context(), bobs, Terms{}) },
		} {
			if r, err := read(); !errors.Is(err, ErrCorrupt) {
				t.Errorf("%+v, %v", r, err)
			}
		}
	})
}

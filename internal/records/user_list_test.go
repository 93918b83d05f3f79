package records

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/a2139e8d/latchkey/internal/memnet"
	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/locker/transport"
	"github.com/gomodule/redigo/redis"
)

// A counted connection counts the bytes that it moves.
type counted struct {
	net.Conn
	moved *atomic.Int64
}

func (c counted) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.moved.Add(int64(n))
	return n, err
}

func (c counted) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	c.moved.Add(int64(n))
	return n, err
}

// countedPool returns a pool of counted connections.
func countedPool(t *testing.T, s *redistest.Server, moved *atomic.Int64) *redis.Pool {
	pool := &redis.Pool{DialContext: func(ctx context.Context) (redis.Conn, error) {
		return redis.DialContext(ctx, "tcp", s.Addr, redis.DialContextFunc(func(ctx context.Context, network, addr string) (net.Conn, error) {
			c, err := memnet.DialContext(ctx, network, addr)
			return counted{c, moved}, err
		}))
	}}
	t.Cleanup(func() { pool.Close() })
	return pool
}

// A list moves less than a kilobyte for each session, whatever the sessions hold, and however long the names of
// user and devices are. It shows the same as if it read whole records.
func TestAListMovesNoMoreThanItShows(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		for form, o := range map[string]Options{"plain": patient, "encrypted": encrypted(newKey)} {
			s.Do(t, "FLUSHALL")
			var moved atomic.Int64
			st := onPool(countedPool(t, s, &moved), o)
			user := strings.Repeat("\x00", MaxUser)
			devices := []string{"", `Firefox, "Berlin"`, strings.Repeat("x", MaxDevice), strings.Repeat("\x01", MaxDevice), strings.Repeat("ü", MaxDevice)}
			const sessions = 50
			newest := time.Now() // each is a second older than the one before, however late it is stored
			for n := range sessions {
				r := recordOfUser(user)
				r.Created, r.Device, r.Own = newest.Add(-time.Duration(n)*time.Second), devices[n%len(devices)], nil
				if n%2 == 0 {
					r.Own = &Times{Idle: maxIdle, Until: time.Now().Add(24 * time.Hour)}
				}
				r.Data = []byte(strings.Repeat("x", 50_000))
				must(t, st.CreateRecord(t.Context(), idOf(st, user, n), r, Terms{}))
			}
			_, err := st.ListUser(t.Context(), user, Terms{}) // from now on Redis has the script
			must(t, err)
			before := moved.Load()
			listed, err := st.ListUser(t.Context(), user, Terms{})
			if each := (moved.Load() - before) / sessions; err != nil || len(listed) != sessions || each > 1000 {
				t.Errorf("%s: %d listed, %v, and %d bytes moved for each", form, len(listed), err, each)
			}
			for n, l := range listed {
				r, expires, err := st.Peek(t.Context(), idOf(st, user, n), Terms{})
				must(t, err)
				whole := devices[n%len(devices)]
				if l.ID != idOf(st, user, n) || l.User != user || l.Device != r.Device || !strings.HasPrefix(whole, l.Device) || l.Device == "" && whole != "" {
					t.Errorf("%s: session %d of device %.20q is listed with device %.100q", form, n, r.Device, l.Device)
				}
				if !l.Created.Equal(r.Created) || l.Expires.Sub(expires).Abs() > time.Minute {
					t.Errorf("%s: listed is %v to %v, stored %v to %v", form, l.Created, l.Expires, r.Created, expires)
				}
			}
		}
	})
}

// Of a device, at most MaxDevice bytes are stored, in whole characters.
func TestLongDevices(t *testing.T) {
	t.Parallel()
	invalid := strings.Trim(string(appendQuoted(nil, "\xff")), `"`) // depends on the version of Go
	for device, want := range map[string]int{
		"": 0, "Firefox": 7,
		strings.Repeat("x", MaxDevice+1):     MaxDevice,
		strings.Repeat("ü", MaxDevice):       MaxDevice,
		"x" + strings.Repeat("ü", MaxDevice): MaxDevice - 1,
		strings.Repeat("\x01", MaxDevice):    MaxDevice / 6,
		strings.Repeat("\xff", MaxDevice):    MaxDevice / len(invalid),
	} {
		got := shortened(device)
		if len(got) != want || !strings.HasPrefix(device, got) || utf8.ValidString(device) && !utf8.ValidString(got) {
			t.Errorf("%.20q is stored with %d bytes, want %d", device, len(got), want)
		}
	}
}

// P11: the replies to two users' lists change places. Neither user sees the other's sessions. If another
// user's record was copied to the key of a session of this user, the list shows nothing of it.
func TestAListShowsNobodyElsesSessions(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		other := process(t, s)
		for n := range 6 {
			user := []string{"ann", "bob"}[n%2]
			r := recordOfUser(user)
			r.Device = user
			must(t, other.CreateRecord(t.Context(), idOf(other, user, n), r, Terms{}))
		}
		for call := range 2 { // 0 is for the list, 1 for the records
			for at := range 8 {
				client := transport.NewRedigo(s.Pool(t, 8), patient.Timeout)
				c := &crossing{Client: client, at: at, after: call, first: make(chan []any), done: make(chan struct{})}
				st := New(c, patient)
				var all sync.WaitGroup
				for _, user := range []string{"ann", "bob"} {
					all.Go(func() {
						listed, err := st.ListUser(t.Context(), user, Terms{})
						if err != nil {
							t.Errorf("reply %d of call %d: %v", at, call, err)
						}
						for _, l := range listed {
							if tag, _, _ := cutTag(l.ID); tag != tagIn(idOf(st, user, 0)) || l.User != user || l.Device != "" && l.Device != user {
								t.Errorf("reply %d of call %d: %s sees %+v", at, call, user, l)
							}
						}
					})
				}
				all.Wait()
				must(t, client.Close())
			}
		}

		id := idOf(other, "ann", 0)
		copied, _ := s.Get(t, other.recordKey(idOf(other, "bob", 1)))
		s.Do(t, "SET", other.recordKey(id), copied, "PX", time.Hour.Milliseconds())
		listed, err := other.ListUser(t.Context(), "ann", Terms{})
		at := slices.IndexFunc(listed, func(l Listed) bool { return l.ID == id })
		if err != nil || at < 0 || listed[at].Device != "" || !listed[at].Created.IsZero() {
			t.Errorf("%+v, %v", listed, err)
		}
	})
}

func tagIn(id string) string {
	tag, _, _ := cutTag(id)
	return tag
}

// A login and a Renew store at most MaxDevice of a device, and a list shows it.
func TestALongDeviceIsListed(t *testing.T) {
	inFakeTime(t, func(t *testing.T, s *redistest.Server) {
		st, long := process(t, s), strings.Repeat("x", 2*MaxDevice)
		r := recordOfUser("ann")
		r.Device = long
		must(t, st.CreateRecord(t.Context(), idOf(st, "ann", 1), r, Terms{}))
		create(t, st, "1")
		h := take(t, st)
		h.Record.User, h.Record.Device = "ann", long
		must(t, h.Renew(t.Context(), idOf(st, "ann", 2), []byte("1")))
		list, err := st.ListUser(t.Context(), "ann", Terms{})
		must(t, err)
		for _, l := range list {
			if l.Device != long[:MaxDevice] || l.Created.IsZero() {
				t.Errorf("listed is a device of %d bytes, want %d", len(l.Device), MaxDevice)
			}
		}
		if len(list) != 2 {
			t.Errorf("%d sessions are listed, want 2", len(list))
		}
	})
}

// A list takes no longer than one Timeout, even if one connection after another breaks late.
func TestAListGivesUpAfterOneTimeout(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		st := New(breaking{after: time.Second * 3 / 4}, Options{Timeout: time.Second})
		begun := time.Now()
		_, err := st.ListUser(t.Context(), "ann", Terms{})
		wantError(t, "ListUser", err, ErrUnavailable)
		if took := time.Since(begun); took > time.Second {
			t.Errorf("the list took %v, want 1s at most", took)
		}
	})
}

// breaking is a client whose connections break a while after the commands were sent.
type breaking struct{ after time.Duration }

func (b breaking) Do(ctx context.Context, _ string, _ ...transport.Command) ([]any, error) {
	select {
	case <-ctx.Done():
		return nil, fmt.Errorf("%w: no reply: %w", transport.ErrUnavailable, ctx.Err())
	case <-time.After(b.after):
		return nil, fmt.Errorf("%w: the connection broke", transport.ErrUnavailable)
	}
}

func (breaking) Subscribe(context.Context, string) (transport.Subscription, error) {
	return nil, transport.ErrRefused
}

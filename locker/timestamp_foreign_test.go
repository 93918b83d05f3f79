package locker

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/a2139e8d/latchkey/internal/lease"
	"github.com/a2139e8d/latchkey/internal/redistest"
)

// What is no time in Unix milliseconds: the command that sets it, and the one that
// reads it.
var foreign = map[string][2][]any{
	"a number":            {{"SET", "k", "42"}, {"GET", "k"}},
	"a word":              {{"SET", "k", "hello"}, {"GET", "k"}},
	"nothing":             {{"SET", "k", ""}, {"GET", "k"}},
	"a spin lock's token": {{"SET", "k", "ABCDEFGHIJKLMNOPQRSTUVWXYZ 1763686060123 web/1"}, {"GET", "k"}},
	"Unix seconds":        {{"SET", "k", "1763686060"}, {"GET", "k"}},
	"Unix seconds, float": {{"SET", "k", "1763686060.123"}, {"GET", "k"}},
	"12 digits":           {{"SET", "k", "176368606012"}, {"GET", "k"}},
	"14 digits":           {{"SET", "k", "17636860601234"}, {"GET", "k"}},
	"Unix microseconds":   {{"SET", "k", "1763686060123456"}, {"GET", "k"}},
	"a sign":              {{"SET", "k", "-1763686060123"}, {"GET", "k"}},
	"an exponent":         {{"SET", "k", "1.7636860601234E+12"}, {"GET", "k"}},
	"two points":          {{"SET", "k", "1763686060123.4.5"}, {"GET", "k"}},
	"something before":    {{"SET", "k", " 1763686060123"}, {"GET", "k"}},
	"something behind":    {{"SET", "k", "1763686060123\n"}, {"GET", "k"}},
	"letters":             {{"SET", "k", "17636860601ab"}, {"GET", "k"}},
	"a list":              {{"LPUSH", "k", "1763686060123"}, {"TYPE", "k"}},
}

// The key belongs to something else. Nobody waits for that to change, and nothing
// is done to it, not even by one who had the lock before.
func TestTimestampForeign(t *testing.T) {
	onServers(t, func(t *testing.T, server *redistest.Server) {
		timestamp, proxy := newProxiedTimestamp(t, server, patient)
		o := patient
		o.Wait = s // enough for more than one try
		another := NewTimestamp(proxy.Pool(t, 1), o)
		for name, commands := range foreign {
			set, get := commands[0], commands[1]
			l := mustTake(t, timestamp, "k")
			server.Do(t, "DEL", "k")
			server.Do(t, set[0].(string), set[1:]...)
			want := server.Do(t, get[0].(string), get[1:]...)

			proxy.Forget()
			_, err := another.Lock(t.Context(), "k")
			if !errors.Is(err, ErrForeign) || !strings.Contains(err.Error(), " for k: ") {
				t.Errorf("%s: Lock: %v, want an error that names the key and the reason", name, err)
			}
			if n := proxy.Requests(); n != 1 {
				t.Errorf("%s: Lock sent %d commands", name, n)
			}
			if err := l.Extend(t.Context(), s); !errors.Is(err, ErrForeign) {
				t.Errorf("%s: Extend: %v", name, err)
			}
			if err := l.UnlockAfter(t.Context(), s); !errors.Is(err, ErrForeign) {
				t.Errorf("%s: UnlockAfter: %v", name, err)
			}
			if err := timestamp.lock.(*lock).algorithm.Release(t.Context(), "k", (*lease.Lease)(l).Token(), 0); !errors.Is(err, ErrForeign) {
				t.Errorf("%s: Release: %v", name, err)
			}
			if got := server.Do(t, get[0].(string), get[1:]...); !reflect.DeepEqual(got, want) {
				t.Errorf("%s: %q became %q", name, want, got)
			}
			if ttl := server.Do(t, "PTTL", "k"); ttl != int64(-1) {
				t.Errorf("%s: it now ends in %d ms", name, ttl)
			}
			server.Do(t, "FLUSHDB")
		}
	})
}

// What Redis refuses is neither a foreign value nor a free lock.
func TestTimestampRefused(t *testing.T) {
	t.Parallel()
	server := redistest.Real(t)
	server.Do(t, "ACL", "SETUSER", "app", "on", ">pw", "~*", "-@all", "+evalsha", "+eval", "+set", "+del", "+time")
	_, err := NewTimestamp(poolAs(t, server, "app"), noWait()).Lock(t.Context(), "k")
	if !errors.Is(err, ErrUnavailable) || errors.Is(err, ErrForeign) || server.Exists(t, "k") {
		t.Errorf("Lock without the right to GET: %v", err)
	}
}

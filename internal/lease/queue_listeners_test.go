package lease

import (
	"testing"

	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/gomodule/redigo/redis"
)

// Places whose processes have died cost nothing, also while somebody listens to all
// channels there are, as operators do. Only where Redis does not permit to ask who
// listens to a single one, such a listener is taken for the process.
func TestTheDeadAreNotTakenForListening(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		rights   []any
		told     bool // the living
		mistaken bool
	}{
		"all of it":          {[]any{"+publish", "+pubsub|numsub"}, true, false},
		"no publish":         {[]any{"+pubsub|numsub"}, false, false},
		"no pubsub":          {[]any{"+publish"}, true, true},
		"another subcommand": {[]any{"+publish", "+pubsub|numpat"}, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := redistest.Real(t)
			server.Do(t, "ACL", append([]any{"SETUSER", "app", "on", ">pw", "resetkeys", "~*", "resetchannels", "&latchkey:wake:*", "-@all",
				"+ping", "+get", "+set", "+del", "+pexpire", "+eval", "+evalsha"}, tt.rights...)...)
			q := newScripts(t, server)
			q.spin = Spin{Runner: overPool(poolAs(t, server, "app"), 10*s)}
			living, heard := q.hears("living")
			wantTurn := func(place string) {
				t.Helper()
				q.wantTaken("A", "")
				q.wantHeld("B", dead("one"))
				q.wantHeld("C", dead("two"))
				q.wantHeld("D", living)
				q.releases("A")
				if q.lock() != place {
					t.Errorf("it is the turn of %s, not of %s", q.lock(), place)
				}
				if tt.told && place == living && q.message(heard) != living {
					t.Error("it was not told")
				}
				server.Do(t, "FLUSHALL")
			}
			wantTurn(living)
			listenToAll(t, server)
			if tt.mistaken {
				wantTurn(dead("one"))
			} else {
				wantTurn(living)
			}
		})
	}
}

// listenToAll is an operator who looks at what goes on.
func listenToAll(t *testing.T, server *redistest.Server) {
	t.Helper()
	conn, err := redis.Dial("tcp", server.Addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	if _, err := conn.Do("PSUBSCRIBE", "*"); err != nil {
		t.Fatal(err)
	}
}

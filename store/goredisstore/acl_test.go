package goredisstore

import (
	"fmt"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/store"
	"github.com/redis/go-redis/v9"
)

// What a Redis user must be allowed at the least on a cluster, as the package's comment says.
var leastRights = []any{
	"on", ">pw", "resetkeys", "~latchkey:*", "resetchannels", "-@all",
	"+ping", "+get", "+mget", "+getrange", "+set", "+del", "+pexpire", "+pttl", "+rename", "+eval", "+evalsha",
	"+cluster|slots", "+asking",
	"+spublish", "+ssubscribe", "&latchkey:wake:*", // optional
}

func TestLeastRightsSufficeOnCluster(t *testing.T) {
	t.Parallel()
	c := redistest.NewCluster(t, 2, 0)
	c.Add(t)
	for _, node := range c.Nodes {
		node.Do(t, "ACL", append([]any{"SETUSER", "app"}, leastRights...)...)
	}
	o := clusterOptions(c)
	o.Addrs, o.Username, o.Password = o.Addrs[:1], "app", "pw"
	st := newStore(t, redis.NewClusterClient(o))
	other := newStore(t, redis.NewClusterClient(clusterOptions(c)))
	live := func(id string) error {
		if err := st.Create(t.Context(), id, []byte("1"), store.Terms{}); err != nil {
			return err
		}
		h, err := other.Take(t.Context(), id, store.Terms{})
		if err != nil {
			return err
		}
		time.AfterFunc(50*time.Millisecond, func() { h.Release(t.Context()) })
		if h, err = st.Take(t.Context(), id, store.Terms{}); err != nil { // it waits
			return err
		}
		return h.Save(t.Context(), []byte("2"))
	}
	for i := range 5 {
		if err := live(fmt.Sprint("id", i)); err != nil {
			t.Error(err)
		}
	}
	c.Move(t, c.Slot(t, "latchkey:{moved}"), c.Nodes[2])
	c.BeginMove(t, c.Slot(t, "latchkey:{moving}"), c.Nodes[2])
	if err := live("moved"); err != nil {
		t.Error(err)
	}
	// Of a slot that is being moved, what is read alone is answered.
	if _, err := st.Load(t.Context(), "moving", store.Terms{}); err == nil || err.Error() != "store: loading moving: no such session" {
		t.Error(err)
	}
}

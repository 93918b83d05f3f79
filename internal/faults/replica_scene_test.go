package faults

import (
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/faults/rig"
	"github.com/a2139e8d/latchkey/internal/history"
	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/gomodule/redigo/redis"
)

// A failover is a scene with a master and a replica. Each demo reaches Redis through an address, like a
// virtual IP, which leads to the master until the test changes that.
type failover struct {
	*scene
	link      *rig.Wire // between the replica and the master; nil: none
	replica   *redistest.Server
	addresses []*rig.Wire
	killed    time.Time
}

// stageFailover starts a scene with a replica. For Sentinel, and for FAILOVER, the replica
// must follow the master directly, without a link that a test could cut.
func stageFailover(t *testing.T, fault, promise string, direct bool, with setting) *failover {
	t.Helper()
	f := &failover{}
	with.redis = append([]string{"--repl-diskless-sync", "no", "--repl-ping-replica-period", "1"}, with.redis...)
	with.url = func(s *scene) string {
		a := rig.NewWire(t, s.redis.Addr)
		f.addresses = append(f.addresses, a)
		return a.URL
	}
	f.scene = stage(t, fault, promise, with)
	at := f.redis.Addr
	if !direct {
		f.link = rig.NewWire(t, at)
		at = f.link.Addr
	}
	f.replica = rig.Replica(t, at)
	return f
}

// lag stops all traffic between the replica and the master, though their connection stays
// open.
func (f *failover) lag() {
	f.Helper()
	f.link.Trouble(&rig.Trouble{Lose: true}, &rig.Trouble{Lose: true})
}

// kill kills the master, and records when.
func (f *failover) kill() {
	f.Helper()
	f.killed = time.Now()
	f.redis.Stop(f.T)
	if f.link != nil {
		f.link.Cut()
	}
}

// promote makes the replica a master, with the data that it has.
func (f *failover) promote() {
	f.Helper()
	rig.Promote(f.T, f.replica)
}

// delivery is the longest time that a response is under way to a visitor. Later responses belong to the
// time after the setback.
const delivery = 200 * time.Millisecond

// follow makes all addresses lead to the new master, after recording the data there.
func (f *failover) follow() {
	f.Helper()
	pause(f.Context(), time.Until(f.killed.Add(delivery)))
	f.setback = setback(f.T, f.killed, f.replica)
	f.redis = f.replica
	f.lead(f.replica)
}

func (f *failover) lead(to *redistest.Server) {
	for _, a := range f.addresses {
		a.Lead(to.Addr)
	}
}

// setback says that all data that a server does not have is lost since a moment.
func setback(t *testing.T, since time.Time, has *redistest.Server) *history.Setback {
	t.Helper()
	left := numbers(t, has)
	return &history.Setback{From: since, Until: time.Now(), Left: func(cookie string) (int, bool) {
		n, there := left[rig.RecordKey(t, cookie)]
		return n, there
	}}
}

// numbers returns the number in each record of a server.
func numbers(t *testing.T, r *redistest.Server) map[string]int {
	t.Helper()
	conn, err := redis.DialURL(r.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_, _ = conn.Do("READONLY") // for a replica in a cluster; other servers refuse it
	all := make(map[string]int)
	for _, key := range recordKeys(t, r) {
		text, err := redis.Bytes(conn.Do("GET", key))
		if errors.Is(err, redis.ErrNil) {
			continue
		}
		var record struct {
			Data *struct{ N int } `json:"d"`
		}
		if err == nil {
			err = json.Unmarshal(text, &record)
		}
		if err != nil {
			t.Fatalf("%s: %v in %q", key, err, text)
		}
		if record.Data != nil { // otherwise the session has ended
			all[key] = record.Data.N
		}
	}
	return all
}

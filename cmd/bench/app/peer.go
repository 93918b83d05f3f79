package app

import (
	"slices"
	"time"
)

// A Peer is something that is measured.
type Peer struct {
	Name  string // short, for the command line
	Title string // for tables
	Locks bool   // it promises to lose nothing
	Lock  string // what its lock is called that can be used without sessions
	open  func(Config) (backend, error)
}

// Connections is how many connections to Redis a process may use: as many as
// Latchkey's own pool has.
const Connections = 64

// endless is how long a request waits for its session, and for a connection: no
// peer gives up before the benchmark does.
const endless = 2 * time.Minute

// lease is how long a lock outlives a killed holder.
const lease = 10 * time.Second

// The names of the peers that are compared: the first one with all others, the
// other two because a limit is told by them.
const (
	Latchkey    = "latchkey"
	SCS         = "scs" // has no lock
	Rueidislock = "rueidislock"
)

// Peers returns all of them.
func Peers() []Peer {
	return []Peer{
		{Name: Latchkey, Title: "Latchkey", Locks: true, Lock: "locker.NewSpin", open: openLatchkey},
		{Name: SCS, Title: "scs + goredisstore", open: openSCS},
		{Name: "gorilla", Title: "gorilla + redistore", open: openGorilla},
		{Name: Rueidislock, Title: "scs + rueidislock", Locks: true, Lock: "rueidislock", open: locked(newRueidislock)},
		{Name: "redsync", Title: "scs + redsync", Locks: true, Lock: "redsync", open: locked(newRedsync)},
		{Name: "redislock", Title: "scs + redislock", Locks: true, Lock: "redislock", open: locked(newRedislock)},
		{Name: "spin1", Title: "scs + spin, 1 ms", Locks: true, open: locked(newSpin(time.Millisecond))},
		{Name: "spin200", Title: "scs + spin, 200 ms", Locks: true, open: locked(newSpin(200 * time.Millisecond))},
	}
}

// Find returns the peer with the given name.
func Find(name string) (Peer, bool) {
	all := Peers()
	i := slices.IndexFunc(all, func(p Peer) bool { return p.Name == name })
	if i < 0 {
		return Peer{}, false
	}
	return all[i], true
}

// Package locksite runs package lockertest on the servers of package redistest.
package locksite

import (
	"slices"
	"sync"
	"testing"

	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/locker"
	"github.com/a2139e8d/latchkey/locker/lockertest"
)

// New returns a site on nodes. lock makes the lock of one process, which reaches each node through a
// separate proxy.
func New(t *testing.T, nodes []*redistest.Server, lock func(ways []*redistest.Proxy, o locker.Options) locker.Locker) lockertest.Site {
	return lockertest.Site{
		New: func(o locker.Options) *lockertest.Process {
			ways := make([]*way, len(nodes))
			proxies := make([]*redistest.Proxy, len(nodes))
			for i, node := range nodes {
				ways[i] = newWay(t, node)
				proxies[i] = ways[i].proxy
			}
			return newProcess(lock(proxies, o), ways)
		},
		ScriptFlush: func() {
			for _, node := range nodes {
				node.Do(t, "SCRIPT", "FLUSH")
			}
		},
		Forget: func(node int, key string) {
			nodes[node].Do(t, "DEL", key, "{"+key+"}.owner") // the note of Timestamp
		},
		Keys: func(node int) []string { return nodes[node].Keys(t) },
	}
}

func newProcess(l locker.Locker, ways []*way) *lockertest.Process {
	return &lockertest.Process{
		Locker: l,
		Break:  func(node int, faults ...lockertest.Fault) { ways[node].breakNext(faults) },
		Pause: func() (resume, deliver func()) {
			all := func(f func(w *way)) func() {
				return func() {
					for _, w := range ways {
						f(w)
					}
				}
			}
			all((*way).pause)()
			return all((*way).resume), all(func(w *way) { w.proxy.Release() })
		},
		Exchanges: func() int {
			n := 0
			for _, w := range ways {
				for _, command := range w.proxy.Commands() {
					if !greets(command) && command.Name != "PING" { // a client checks a connection by these
						n++
					}
				}
			}
			return n
		},
	}
}

// A way is how the round trips of one process with one node go.
type way struct {
	proxy *redistest.Proxy

	mu     sync.Mutex // guards all below
	faults []lockertest.Fault
	paused bool
}

func newWay(t *testing.T, node *redistest.Server) *way {
	w := &way{proxy: redistest.NewProxy(t, node)}
	w.proxy.Inject(w.fate)
	return w
}

func (w *way) breakNext(faults []lockertest.Fault) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.faults = slices.Clone(faults)
}

func (w *way) pause() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.paused = true
}

func (w *way) resume() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.paused = false
}

// greets reports whether a command is one with which some clients begin a connection.
func greets(c redistest.Command) bool {
	return c.Name == "HELLO" || c.Name == "CLIENT" || c.Name == "CLUSTER"
}

func (w *way) fate(c redistest.Command) redistest.Fault {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case greets(c):
		return redistest.Pass
	case w.paused:
		return redistest.HangCommand
	case len(w.faults) == 0, c.Name == "PING": // a client checks a connection by it
		return redistest.Pass
	}
	fault := w.faults[0]
	w.faults = w.faults[1:]
	return map[lockertest.Fault]redistest.Fault{
		lockertest.LoseReply:   redistest.DropReply,
		lockertest.CutReply:    redistest.CutReply,
		lockertest.LoseCommand: redistest.DropCommand,
		lockertest.Hang:        redistest.Hang,
	}[fault]
}

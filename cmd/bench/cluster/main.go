// Command cluster measures what sessions cost a Redis Cluster of one, two and three masters, and a server
// that is not a cluster, through store/rueidisstore.
//
//	go run ./cluster    # in cmd/bench; about a minute
//
// Its clients take and save sessions, each its own, without HTTP in between. They share the machine with all
// nodes, so their number of requests per second says nothing about a larger cluster. The CPU time that a node
// spends on a request does: a node executes commands on one core, so the time shows at how many requests the
// node is full.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/redis/rueidis"

	"github.com/a2139e8d/latchkey/internal/records"
	"github.com/a2139e8d/latchkey/store"
	"github.com/a2139e8d/latchkey/store/rueidisstore"
)

func main() {
	ends := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) { // nohup ignores it
		ends = append(ends, syscall.SIGHUP)
	}
	ctx, stop := signal.NotifyContext(context.Background(), ends...)
	defer stop()
	rounds := flag.Int("rounds", 9, "measure each layout this many times")
	span := flag.Duration("time", 500*time.Millisecond, "measure for this long each time")
	flag.Parse()
	if flag.NArg() > 0 || *rounds < 1 || *span < time.Millisecond {
		fmt.Fprintln(os.Stderr, "cluster: there must be at least one round, of at least 1ms, and no argument beside the flags")
		os.Exit(2)
	}
	layouts, err := measure(ctx, *rounds, *span)
	if err != nil {
		fmt.Fprintln(os.Stderr, "cluster:", err)
		os.Exit(1)
	}
	fmt.Printf("%s, %d cores, %d processes; medians of %d rounds of %v.\n\n%s",
		layouts[0].nodes[0].version, runtime.NumCPU(), processes, *rounds, *span, table(layouts))
}

var loads = []int{2, 16, 64, 256} // clients at once

// processes is as many as two cores can feed: each has its own store, and so its own connections.
const processes = 2

// measure starts the nodes of all layouts, and lets them take turns. It leaves no node behind, also if it fails.
func measure(ctx context.Context, rounds int, span time.Duration) (_ []*layout, err error) {
	var layouts []*layout
	for masters, title := range []string{"one server", "1 master", "2 masters", "3 masters"} {
		layouts = append(layouts, &layout{title: title, masters: masters, samples: make(map[int][]sample)})
	}
	defer func() {
		for _, l := range layouts {
			err = errors.Join(err, l.close())
		}
	}()
	for _, l := range layouts {
		if err := l.start(ctx); err != nil {
			return nil, fmt.Errorf("%s: %w", l.title, err)
		}
	}
	for round := range rounds {
		for i := range layouts {
			l := layouts[(i+round)%len(layouts)]
			for _, clients := range loads {
				s, err := l.run(ctx, clients, span)
				if err != nil {
					return nil, fmt.Errorf("%s, %d clients: %w", l.title, clients, err)
				}
				l.samples[clients] = append(l.samples[clients], s)
			}
		}
	}
	return layouts, nil
}

// A layout is one server, or the masters of a cluster, and stores that use it.
type layout struct {
	title   string
	masters int // 0: not a cluster
	nodes   []*node
	stores  []*store.Store
	samples map[int][]sample // by clients
}

const sessions = 1024

var terms = records.Terms{TTL: time.Hour, Lifetime: 24 * time.Hour, MaxBytes: 1 << 20}

func (l *layout) start(ctx context.Context) (err error) {
	if l.nodes, err = startNodes(ctx, l.masters); err != nil {
		return err
	}
	for range processes {
		s, err := rueidisstore.Open(rueidis.ClientOption{InitAddress: []string{l.nodes[0].addr}}, store.Options{})
		if err != nil {
			return err
		}
		l.stores = append(l.stores, s)
	}
	for i := range sessions {
		if err := records.Of(l.stores[0]).Create(ctx, id(i), data, terms); err != nil {
			return err
		}
	}
	return nil
}

func (l *layout) close() (err error) {
	for _, s := range l.stores {
		err = errors.Join(err, s.Close())
	}
	for _, n := range l.nodes {
		err = errors.Join(err, n.close())
	}
	return err
}

var data = []byte(`{"user":"ann","text":"` + strings.Repeat("x", 78) + `"}`) // of 100 bytes

func id(i int) string { return fmt.Sprintf("%043d", i) }

// A sample has the figures of one layout in one round.
type sample struct {
	rate  float64 // requests per second
	cpu   float64 // of all nodes, in µs per request
	reads float64 // from connections, per request
	conns float64 // of each process to each node
	most  float64 // the busiest node's share of the CPU time, times the number of nodes
}

// run lets clients take and save sessions for a while.
func (l *layout) run(ctx context.Context, clients int, span time.Duration) (sample, error) {
	if err := l.load(ctx, clients, span/10); err != nil { // connections, scripts
		return sample{}, err
	}
	before, err := l.costs()
	if err != nil {
		return sample{}, err
	}
	done.Store(0)
	begin := time.Now()
	if err := l.load(ctx, clients, span); err != nil {
		return sample{}, err
	}
	took, n := time.Since(begin), float64(done.Load())
	after, err := l.costs()
	if err != nil {
		return sample{}, err
	}
	s := sample{rate: n / took.Seconds()}
	var cpu, reads, conns, most float64
	for i := range l.nodes {
		spent := after[i].cpu - before[i].cpu
		cpu += spent
		most = max(most, spent)
		reads += after[i].reads - before[i].reads
		conns += after[i].clients - 1 // the connection of this program itself
	}
	nodes := float64(len(l.nodes))
	s.cpu, s.reads, s.conns, s.most = cpu*1e6/n, reads/n, conns/nodes/processes, most*nodes/cpu
	return s, nil
}

var done atomic.Int64

// load sends requests from all clients, each to its own sessions in turn, and returns the first error.
func (l *layout) load(ctx context.Context, clients int, span time.Duration) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	end := time.Now().Add(span)
	var all sync.WaitGroup
	for c := range clients {
		all.Go(func() {
			st := l.stores[c%len(l.stores)]
			for i := c; time.Now().Before(end) && ctx.Err() == nil; i = (i + clients) % sessions {
				hold, _, err := records.Of(st).Take(ctx, id(i), terms)
				if err == nil {
					err = hold.Save(ctx, data)
				}
				if err != nil {
					cancel(err)
					return
				}
				done.Add(1)
			}
		})
	}
	all.Wait()
	return context.Cause(ctx)
}

func (l *layout) costs() (all []cost, err error) {
	for _, n := range l.nodes {
		c, err := n.cost()
		if err != nil {
			return nil, err
		}
		all = append(all, c)
	}
	return all, nil
}

// table returns a row for each layout and load.
func table(layouts []*layout) string {
	var b strings.Builder
	b.WriteString("| | clients | requests per second, here | µs of Redis per request: median | least |" +
		" reads per request | busiest node ÷ mean | connections per process and node |\n" +
		"|---|--:|--:|--:|--:|--:|--:|--:|\n")
	for _, clients := range loads {
		for _, l := range layouts {
			sorted := func(of func(sample) float64) (all []float64) {
				for _, s := range l.samples[clients] {
					all = append(all, of(s))
				}
				slices.Sort(all)
				return all
			}
			median := func(of func(sample) float64) float64 {
				all := sorted(of)
				return (all[(len(all)-1)/2] + all[len(all)/2]) / 2 // the middle one twice, or the two in the middle
			}
			cpu := func(s sample) float64 { return s.cpu }
			fmt.Fprintf(&b, "| %s | %d | %.0f | %.1f | %.1f | %.2f | %.2f | %.0f |\n", l.title, clients,
				median(func(s sample) float64 { return s.rate }), median(cpu), sorted(cpu)[0],
				median(func(s sample) float64 { return s.reads }),
				median(func(s sample) float64 { return s.most }),
				median(func(s sample) float64 { return s.conns }))
		}
	}
	return b.String()
}

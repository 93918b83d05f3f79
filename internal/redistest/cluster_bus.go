package redistest

import (
	"fmt"
	"io"
	"net"
	"strconv"
	"sync"
	"testing"
)

// busPort returns the port on which a node listens for other nodes. The default is 10000 above the node's
// port, but Linux may have assigned that port already. The ports that busPort returns are below all ports
// of servers, and no two servers share one.
func busPort(port int) int { return port - ports }

// A bus carries the connections between the nodes of a cluster. Every node connects from its own loopback
// address, and announces a port of the bus instead of its own. So the bus knows which node is at each end
// of a connection, and can cut some nodes off from the others while clients still reach them.
type bus struct {
	running sync.WaitGroup

	mu    sync.Mutex          // guards all below
	stops map[string]*busStop // by address
	nodes map[*Server]string  // their addresses
	links map[*link]bool
	apart map[string]bool // the addresses that are cut off
}

// A busStop is the address at which other nodes reach one node.
type busStop struct {
	listener net.Listener
	target   string // host:port
}

// A link is a connection between two nodes, given by their addresses.
type link struct {
	from, to  string
	near, far net.Conn
}

func newBus(tb testing.TB) *bus {
	b := &bus{
		stops: make(map[string]*busStop),
		nodes: make(map[*Server]string),
		links: make(map[*link]bool),
		apart: make(map[string]bool),
	}
	tb.Cleanup(func() {
		b.mu.Lock()
		for _, stop := range b.stops {
			stop.listener.Close()
		}
		for l := range b.links {
			l.close()
		}
		b.mu.Unlock()
		b.running.Wait()
	})
	return b
}

// nextAddress returns the address of the next node.
func (b *bus) nextAddress() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return fmt.Sprintf("127.0.0.%d", 2+len(b.nodes))
}

// leadTo returns the port of the bus that leads to a node, which listens at target.
func (b *bus) leadTo(tb testing.TB, address string, target int) int {
	tb.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	stop := b.stops[address]
	if stop == nil {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			tb.Fatalf("redistest: %v", err)
		}
		stop = &busStop{listener: listener}
		b.stops[address] = stop
		b.running.Go(func() { b.accept(stop, address) })
	}
	stop.target = net.JoinHostPort("127.0.0.1", strconv.Itoa(target))
	return stop.listener.Addr().(*net.TCPAddr).Port
}

func (b *bus) named(node *Server, address string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.nodes[node] = address
}

// port returns the port that a node announces.
func (b *bus) port(node *Server) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.stops[b.nodes[node]].listener.Addr().(*net.TCPAddr).Port
}

func (b *bus) accept(stop *busStop, to string) {
	for {
		near, err := stop.listener.Accept()
		if err != nil {
			return
		}
		from, _, _ := net.SplitHostPort(near.RemoteAddr().String())
		b.running.Go(func() { b.connect(&link{from: from, to: to, near: near}, stop) })
	}
}

// connect carries what two nodes send each other until one of them, or the bus, closes the link.
func (b *bus) connect(l *link, stop *busStop) {
	defer l.near.Close()
	b.mu.Lock()
	target := stop.target
	b.mu.Unlock()
	far, err := net.Dial("tcp", target)
	if err != nil {
		return
	}
	defer far.Close()
	l.far = far
	if !b.open(l) {
		return
	}
	defer b.forget(l)
	var both sync.WaitGroup
	both.Go(func() { _, _ = io.Copy(l.far, l.near); l.close() })
	both.Go(func() { _, _ = io.Copy(l.near, l.far); l.close() })
	both.Wait()
}

func (l *link) close() {
	l.near.Close()
	l.far.Close()
}

// open records a link, unless its ends are cut off from each other.
func (b *bus) open(l *link) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.apart[l.from] != b.apart[l.to] {
		return false
	}
	b.links[l] = true
	return true
}

func (b *bus) forget(l *link) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.links, l)
}

// part cuts nodes off from all others. Without nodes it ends the partition.
func (b *bus) part(nodes ...*Server) {
	b.mu.Lock()
	defer b.mu.Unlock()
	clear(b.apart)
	for _, node := range nodes {
		b.apart[b.nodes[node]] = true
	}
	for l := range b.links {
		if b.apart[l.from] != b.apart[l.to] {
			l.close()
		}
	}
}

// Partition cuts some nodes off from all others until Heal. The nodes that are cut off still reach each
// other, and clients reach every node.
func (c *Cluster) Partition(tb testing.TB, nodes ...*Server) {
	tb.Helper()
	c.bus.part(nodes...)
	for _, replica := range c.Nodes {
		// Replicas do not use the bus. A replica on the other side of its master requires a password from
		// now on that the master does not have.
		master := c.masterOf(tb, replica)
		if master != nil && c.bus.severed(replica, master) {
			replica.Do(tb, "CONFIG", "SET", "masterauth", "severed")
			master.Do(tb, "CLIENT", "KILL", "TYPE", "replica")
		}
	}
}

// severed reports whether two nodes are cut off from each other.
func (b *bus) severed(one, other *Server) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.apart[b.nodes[one]] != b.apart[b.nodes[other]]
}

// Heal ends a partition.
func (c *Cluster) Heal(tb testing.TB) {
	tb.Helper()
	for _, node := range c.Nodes {
		node.Do(tb, "CONFIG", "SET", "masterauth", "")
	}
	c.bus.part()
}

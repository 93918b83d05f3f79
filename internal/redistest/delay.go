package redistest

import (
	"net"
	"sync"
	"testing"
	"time"
)

// NewDelay starts a proxy that delays everything on the way to the server at addr, and back, by oneWay.
// Like a long cable, it does not limit how many bytes are under way. It returns the proxy's address, and
// ends with the test.
func NewDelay(tb testing.TB, addr string, oneWay time.Duration) string {
	tb.Helper()
	near, stop, err := Delay(addr, oneWay)
	if err != nil {
		tb.Fatalf("redistest: %v", err)
	}
	tb.Cleanup(stop)
	return near
}

// Delay is [NewDelay] for programs that are not tests. stop closes all connections and returns when all
// goroutines have ended.
func Delay(addr string, oneWay time.Duration) (near string, stop func(), err error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	d := &delay{oneWay: oneWay, ends: make(map[net.Conn]bool)}
	d.running.Go(func() { d.accept(listener, addr) })
	return listener.Addr().String(), func() {
		listener.Close()
		d.closeAll()
		d.running.Wait()
	}, nil
}

type delay struct {
	oneWay  time.Duration
	running sync.WaitGroup // all goroutines

	mu     sync.Mutex // guards all below
	ends   map[net.Conn]bool
	closed bool
}

func (d *delay) accept(listener net.Listener, addr string) {
	for {
		client, err := listener.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", addr)
		if err != nil {
			client.Close()
			continue
		}
		d.carry(client, server)
		d.carry(server, client)
	}
}

// closeAll closes all connections, including future ones.
func (d *delay) closeAll() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.closed = true
	for c := range d.ends {
		c.Close()
	}
}

// A parcel is some bytes on their way.
type parcel struct {
	bytes []byte
	due   time.Time
}

// underWay is the maximum number of parcels under way. A parcel has up to 64 KB, so a gigabyte per second
// needs only some of them, with a delay of some milliseconds.
const underWay = 4096

// carry copies what comes from one side to the other, in two goroutines. They close both sides when
// either of them has ended.
func (d *delay) carry(from, to net.Conn) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.ends[from] = true; d.closed {
		from.Close()
	}
	parcels := make(chan parcel, underWay)
	d.running.Go(func() {
		defer close(parcels)
		buffer := make([]byte, 64<<10)
		for {
			n, err := from.Read(buffer)
			if n > 0 {
				parcels <- parcel{append([]byte(nil), buffer[:n]...), time.Now().Add(d.oneWay)}
			}
			if err != nil {
				return
			}
		}
	})
	d.running.Go(func() {
		defer d.forget(from)
		defer to.Close()
		for p := range parcels {
			sleepUntil(p.due)
			if _, err := to.Write(p.bytes); err != nil {
				from.Close()
				for range parcels {
				}
				return
			}
		}
	})
}

func (d *delay) forget(c net.Conn) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.ends, c)
}

package differential

import (
	"net"
	"sync"
	"time"
)

// A listener accepts one connection.
type listener struct {
	conn   chan net.Conn
	once   sync.Once
	closed chan struct{}
	addr   net.Addr
}

func (l *listener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conn:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *listener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

func (l *listener) Addr() net.Addr { return l.addr }

var dialling sync.Mutex

// connection returns the two ends of a new connection. All are made with one listener, one
// after another: a port for each would exhaust them.
func connection() (client, server net.Conn, err error) {
	dialling.Lock()
	defer dialling.Unlock()
	l, err := theListener()
	if err != nil {
		return nil, nil, err
	}
	if client, err = net.Dial("tcp", l.Addr().String()); err != nil {
		return nil, nil, err
	}
	for {
		if server, err = l.Accept(); err != nil {
			client.Close()
			return nil, nil, err
		}
		if server.RemoteAddr().String() == client.LocalAddr().String() {
			return client, server, nil
		}
		server.Close() // another process's, by chance
	}
}

var theListener = sync.OnceValues(func() (net.Listener, error) { return net.Listen("tcp", "127.0.0.1:0") })

// arrivals are the bytes that the client has received so far.
type arrivals struct {
	mu      sync.Mutex
	bytes   []byte
	over    bool
	changed chan struct{} // closed at the next change
}

func (a *arrivals) add(p []byte, over bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.bytes, a.over = append(a.bytes, p...), a.over || over
	close(a.changed)
	a.changed = make(chan struct{})
}

// await waits until found is true of what has arrived.
func (a *arrivals) await(found func([]byte) bool) bool {
	limit := time.After(patience)
	for {
		a.mu.Lock()
		yes, over, changed := found(a.bytes), a.over, a.changed
		a.mu.Unlock()
		if yes || over {
			return yes
		}
		select {
		case <-changed:
		case <-limit:
			return false
		}
	}
}

func (a *arrivals) all() []byte {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.bytes
}

package rueidisstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/a2139e8d/latchkey/locker/transport"
	"github.com/redis/rueidis"
)

// A maker makes the rueidis client when it is first needed, since rueidis fails if no server replies yet. One
// try at a time is made for all waiting callers, and the next try not before retryTime or, with sentinels, sentinelTime.
type maker struct {
	option rueidis.ClientOption
	made   atomic.Pointer[rueidis.Client]

	mu     sync.Mutex // guards the fields below
	making chan struct{}
	err    error // of the last try
	retry  time.Time
	closed bool
}

const (
	retryTime    = 50 * time.Millisecond
	sentinelTime = 250 * time.Millisecond // each try asks all sentinels
)

// client waits for the client until end, or until ctx is cancelled.
func (m *maker) client(ctx context.Context, end time.Time) (rueidis.Client, error) {
	if redis := m.made.Load(); redis != nil {
		return *redis, nil
	}
	making, err := m.begin()
	if err != nil {
		return nil, err
	}
	timer := time.NewTimer(time.Until(end))
	defer timer.Stop()
	select {
	case <-making:
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-timer.C:
		return nil, context.DeadlineExceeded
	}
	if redis := m.made.Load(); redis != nil {
		return *redis, nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return nil, cmp.Or(m.err, errDropped)
}

var errDropped = errors.New("rueidis: the client was dropped as soon as it was made")

// begin returns a channel that is closed at the end of the present try.
func (m *maker) begin() (<-chan struct{}, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case m.closed:
		return nil, transport.ErrClosed
	case m.making != nil:
		return m.making, nil
	case m.err != nil && time.Now().Before(m.retry):
		return nil, m.err
	}
	made := make(chan struct{})
	if m.made.Load() != nil { // meanwhile
		close(made)
		return made, nil
	}
	m.making = made
	go m.make(made)
	return made, nil
}

// make is the goroutine of one try. It takes as long as rueidis takes to dial all connections.
func (m *maker) make(done chan struct{}) {
	defer close(done)
	redis, err := rueidis.NewClient(m.option)
	if err == nil && redis.Mode() == rueidis.ClientModeCluster && m.option.SelectDB != 0 {
		err = errClusterDB
	}
	m.mu.Lock()
	if m.closed && err == nil {
		err = transport.ErrClosed
	}
	pause := retryTime
	if m.option.Sentinel.MasterSet != "" {
		pause = sentinelTime
	}
	if m.making, m.err, m.retry = nil, m.explained(err), time.Now().Add(pause); err == nil {
		m.made.Store(&redis)
	}
	m.mu.Unlock()
	if err != nil && redis != nil {
		redis.Close()
	}
}

// drop closes a client, unless that was done already. The next caller makes another one.
func (m *maker) drop(redis rueidis.Client) {
	if made := m.made.Load(); made != nil && *made == redis && m.made.CompareAndSwap(made, nil) {
		go redis.Close() // lets round trips under way finish, for at most a second
	}
}

// has reports whether this client is the present one.
func (m *maker) has(redis rueidis.Client) bool {
	made := m.made.Load()
	return made != nil && *made == redis
}

// close lets round trips under way finish, for at most a second.
func (m *maker) close() {
	m.mu.Lock()
	m.closed, m.err = true, transport.ErrClosed
	redis := m.made.Swap(nil)
	m.mu.Unlock()
	if redis != nil {
		(*redis).Close()
	}
}

// explained adds to an error of rueidis what to do.
func (m *maker) explained(err error) error {
	switch {
	case err == nil:
		return nil
	case strings.Contains(err.Error(), "SELECT is not allowed in cluster mode"):
		err = fmt.Errorf("%w: %w", errClusterDB, err)
	case strings.Contains(err.Error(), "DB index is out of range"): // Valkey 9 says so as a cluster, too
		err = fmt.Errorf("the server has no database %d: ClientOption.SelectDB must be 0 with a cluster: %w", m.option.SelectDB, err)
	case errors.Is(err, io.EOF) && m.option.TLSConfig == nil:
		err = fmt.Errorf("the server has closed the connection, perhaps since it is at maxclients, "+
			"or needs TLS (ClientOption.TLSConfig): %w", err)
	case len(m.option.InitAddress) > 1 && strings.Contains(err.Error(), "cluster support disabled"):
		err = fmt.Errorf("ClientOption.InitAddress has several addresses, which are for a cluster or for sentinels: %w", err)
	}
	return fmt.Errorf("rueidis: %w", err)
}

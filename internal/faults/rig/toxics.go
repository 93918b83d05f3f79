package rig

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/Shopify/toxiproxy/v2/stream"
	"github.com/Shopify/toxiproxy/v2/toxics"
	"github.com/rs/zerolog"
)

// Toxics that toxiproxy does not have. They count what they do, so that tests can assert
// that the fault has happened.
func init() {
	zerolog.SetGlobalLevel(zerolog.Disabled) // the toxic "bandwidth" has no logger of its own
	toxics.Register("repeat", new(repeat))
	toxics.Register("tear", new(tear))
	toxics.Register("stall", new(stall))
	toxics.Register("record", new(record))
	toxics.Register("delay", new(delay))
}

// Happened returns how often one of these toxics has taken effect. Call it before Heal.
func (w *Wire) Happened(tb testing.TB, name, stream string) int64 {
	tb.Helper()
	return w.find(tb, name, stream).(interface{ times() int64 }).times()
}

// Recorded returns what the toxic "record" has seen in a direction.
func (w *Wire) Recorded(tb testing.TB, stream string) []byte {
	tb.Helper()
	r := w.find(tb, "record", stream).(*record)
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]byte(nil), r.bytes...)
}

func (w *Wire) find(tb testing.TB, name, stream string) toxics.Toxic {
	tb.Helper()
	found := w.proxy.Toxics.GetToxic(name + "_" + stream)
	if found == nil {
		tb.Fatalf("the wire has no toxic %s %s", name, stream)
	}
	return found.Toxic
}

type count struct{ n atomic.Int64 }

func (c *count) times() int64 { return c.n.Load() }

// carry calls do with each piece, until do returns false or the link ends. It reports
// whether it was interrupted.
func carry(stub *toxics.ToxicStub, do func(*stream.StreamChunk) bool) (interrupted bool) {
	for {
		select {
		case <-stub.Interrupt:
			return true
		case c := <-stub.Input:
			if c == nil || !do(c) {
				stub.Close()
				return false
			}
		}
	}
}

// give passes a piece on. It does not wait for ever, since toxiproxy stops reading from a
// link whose other side is gone.
func give(stub *toxics.ToxicStub, c *stream.StreamChunk) bool {
	return stub.WriteOutput(c, time.Second) == nil
}

// A repeat sends every n-th piece of a stream twice: at once, or again after some more
// pieces. A piece is what is read at once, a reply, or several; or so many lines of that. Redis sends
// in pieces of any number of replies, since clients send commands in pieces, too.
type repeat struct {
	Every int64 `json:"every"`
	Later int   `json:"later"` // pieces
	Lines int   `json:"lines"`
	seen  atomic.Int64
	count
}

func (r *repeat) Pipe(stub *toxics.ToxicStub) {
	var again *stream.StreamChunk
	left := 0 // pieces until then
	one := func(c *stream.StreamChunk) bool {
		if again == nil && r.seen.Add(1)%max(r.Every, 1) == 0 {
			// A copy, since the next toxic may modify it.
			again, left = &stream.StreamChunk{Data: append([]byte(nil), c.Data...), Timestamp: c.Timestamp}, r.Later
		} else {
			left--
		}
		if !give(stub, c) {
			return false
		}
		if again != nil && left <= 0 {
			r.n.Add(1)
			c, again = again, nil
			return give(stub, c)
		}
		return true
	}
	carry(stub, func(c *stream.StreamChunk) bool {
		for _, data := range pieces(c.Data, r.Lines) {
			if !one(&stream.StreamChunk{Data: data, Timestamp: c.Timestamp}) {
				return false
			}
		}
		return true
	})
}

// pieces cuts data after each so many lines; 0: not at all.
func pieces(data []byte, lines int) (all [][]byte) {
	n, from := 0, 0
	for i, b := range data {
		if b != '\n' {
			continue
		}
		if n++; n == lines {
			all, n, from = append(all, data[from:i+1]), 0, i+1
		}
	}
	if from < len(data) {
		all = append(all, data[from:])
	}
	return all
}

// A tear breaks the connection in the middle of every n-th piece.
type tear struct {
	Every int64 `json:"every"`
	seen  atomic.Int64
	count
}

func (t *tear) Pipe(stub *toxics.ToxicStub) {
	carry(stub, func(c *stream.StreamChunk) bool {
		if t.seen.Add(1)%max(t.Every, 1) != 0 {
			return give(stub, c)
		}
		c.Data = c.Data[:len(c.Data)/2]
		if len(c.Data) > 0 {
			give(stub, c)
		}
		t.n.Add(1)
		return false
	})
}

// A stall keeps all pieces, and delivers them when it is removed, even if the sender has
// given up by then, as TCP does when a network comes back. It must be removed before the
// wire ends.
type stall struct{ count }

func (s *stall) Pipe(stub *toxics.ToxicStub) {
	var kept []*stream.StreamChunk
	input, over := stub.Input, false
	for {
		select {
		case c := <-input:
			if c == nil {
				input, over = nil, true
				continue
			}
			kept = append(kept, c)
			s.n.Add(1)
		case <-stub.Interrupt:
			for _, c := range kept {
				if !give(stub, c) {
					break
				}
			}
			if over {
				stub.Close()
			}
			return
		}
	}
}

// A record keeps a copy of what goes through it, on all connections together.
type record struct {
	mu    sync.Mutex
	bytes []byte
}

func (r *record) Pipe(stub *toxics.ToxicStub) {
	carry(stub, func(c *stream.StreamChunk) bool {
		r.mu.Lock()
		r.bytes = append(r.bytes, c.Data...)
		r.mu.Unlock()
		return give(stub, c)
	})
}

// A delay makes all pieces come later. When it is removed, those that it still has come at once.
// Toxiproxy's own, "latency", then waits five seconds for each connection whose client has left.
type delay struct {
	Ms int64 `json:"ms"`
}

func (d *delay) Pipe(stub *toxics.ToxicStub) {
	var kept []*stream.StreamChunk
	wait := time.Duration(d.Ms) * time.Millisecond
	input := stub.Input
	for {
		var due <-chan time.Time
		switch {
		case len(kept) > 0:
			due = time.After(time.Until(kept[0].Timestamp.Add(wait)))
		case input == nil:
			stub.Close()
			return
		}
		select {
		case c := <-input:
			if c == nil {
				input = nil
				continue
			}
			kept = append(kept, c)
		case <-due:
			if !give(stub, kept[0]) {
				stub.Close()
				return
			}
			kept = kept[1:]
		case <-stub.Interrupt:
			for _, c := range kept {
				if stub.WriteOutput(c, 100*time.Millisecond) != nil {
					break
				}
			}
			if input == nil {
				stub.Close()
			}
			return
		}
	}
}

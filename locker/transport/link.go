package transport

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/gomodule/redigo/redis"
)

// A call is the commands of one exchange on a link.
type call struct {
	commands []Command
	deadline time.Time // when its link breaks
	probe    bool      // it is one, see link_timer.go
	link     *link
	since    time.Time   // when the link got it
	taken    bool        // it is sent, or is being sent
	sent     atomic.Bool // redigo has it, and needs the arguments no more

	waits bool          // for wake
	wake  chan struct{} // has room for one signal

	done    bool
	replies []any
	err     error
}

func (x *call) end(replies []any, err error) {
	if x.done, x.replies, x.err = true, replies, err; x.waits {
		x.signal()
	}
}

// signal makes the one that waits look again.
func (x *call) signal() {
	select {
	case x.wake <- struct{}{}:
	default: // it will
	}
}

// A link is one connection, and its calls. Redigo lets one goroutine write while another
// reads. So of those that wait for their replies, one writes the commands of all, and one
// reads the replies of all until it has its own; then the next one goes on. A call that is
// alone does both by itself, and wakes nobody.
//
// Somebody always reads while the commands of several are written, since a proxy may stop
// reading while nobody reads from it.
//
// All is guarded by the client's mu, which is not held while somebody writes, reads, dials
// or closes.
type link struct {
	client *Redigo
	conn   redis.Conn         // nil until it is dialled
	begun  time.Time          // when it began to be dialled
	cancel context.CancelFunc // of the dial

	calls            []*call // in the order in which they are sent and answered
	taken            int     // how many of them are sent, or are being sent
	writing, reading bool
	writer           *call // the call whose caller writes, or did last

	probe     *call     // the PING on another link, if there was one since the last reply
	overtaken time.Time // when it was answered

	retired bool        // it takes no more calls
	err     error       // why it has ended
	used    time.Time   // when the last call came
	due     time.Time   // when the timer fires
	timer   *time.Timer // calls tick
}

// newLink returns a link that is being dialled.
func newLink(c *Redigo, now time.Time) *link {
	ctx, cancel := context.WithTimeout(context.Background(), c.timeout)
	l := &link{client: c, begun: now, cancel: cancel, used: now, due: now.Add(c.timeout)}
	l.timer = time.AfterFunc(c.timeout, l.tick)
	go l.dial(ctx)
	return l
}

func (l *link) dial(ctx context.Context) {
	defer l.cancel()
	var conn redis.Conn
	err := errExited
	defer func() {
		if ctx.Err() != nil && err != nil {
			err = os.ErrDeadlineExceeded
		}
		l.client.mu.Lock()
		defer l.client.mu.Unlock()
		if err != nil {
			l.fail(err)
		} else if l.conn = conn; l.err != nil { // it came too late
			go hangUp(conn)
		} else {
			l.mind()
		}
	}()
	conn, err = l.client.dial(ctx)
}

// mind makes sure that one of those that wait works, if one is needed: a caller that writes
// its own command will read the reply.
func (l *link) mind() {
	writes := !l.writing && l.taken < len(l.calls)
	reads := !l.reading && l.taken > 0 && !(l.writing && l.taken == 1)
	if l.conn != nil && (writes || reads) {
		if i := slices.IndexFunc(l.calls, func(x *call) bool { return x.waits }); i >= 0 {
			l.calls[i].signal()
		}
	}
}

// write sends what was not sent, as long as x waits for its reply.
func (l *link) write(x *call) {
	var err error
	l.writing, l.writer = true, x
	defer l.over(&l.writing, &err)
	if l.taken > 0 {
		// Others may be about to send, and share the flush. With 64 callers on two cores,
		// an exchange takes 3.2 µs of CPU time instead of 4.9.
		l.client.mu.Unlock()
		runtime.Gosched()
		l.client.mu.Lock()
	}
	flushed := true
	for err == nil && l.err == nil && l.taken < len(l.calls) && !(flushed && x.done) {
		next := l.calls[l.taken]
		next.taken = true
		l.taken++
		flushed = l.taken == len(l.calls)
		if l.taken > 1 { // before that, others have nothing to do
			l.mind()
		}
		l.apart(&err, func() (err error) {
			for i := 0; err == nil && i < len(next.commands); i++ {
				err = l.conn.Send(next.commands[i][0].(string), next.commands[i][1:]...)
			}
			next.sent.Store(err == nil)
			if err == nil && flushed {
				err = l.conn.Flush()
			}
			return err
		})
	}
	if !flushed && err == nil && l.err == nil { // what was to come next was withdrawn
		l.apart(&err, l.conn.Flush)
	}
}

// apart does without mu what is up to the connection, which is the application's. What panics there, as
// redigo does where a reply is absurd, or ends the goroutine breaks the connection, not the process.
func (l *link) apart(err *error, do func() error) {
	l.client.mu.Unlock()
	defer l.client.mu.Lock()
	*err = errExited
	defer recovered(err)
	*err = do()
}

// read receives replies until x has its own. To go on for those that were sent together with
// x saves nothing. The link's tick limits how long it takes.
func (l *link) read(x *call) {
	var err error
	l.reading = true
	defer l.over(&l.reading, &err)
	for err == nil && l.err == nil && !x.done {
		first := l.calls[0]
		replies, demoted := make([]any, len(first.commands)), false
		l.apart(&err, func() (err error) {
			for i := 0; err == nil && i < len(replies); i++ {
				replies[i], err = redis.ReceiveWithTimeout(l.conn, 0)
				if refused, ok := err.(redis.Error); ok {
					replies[i], err = refused, nil
					demoted = demoted || strings.Contains(string(refused), "READONLY") // also from within a script
				}
			}
			if err == nil && !first.sent.Load() {
				err = errStray
			}
			return err
		})
		if err == nil {
			l.calls = slices.Delete(l.calls, 0, 1)
			l.taken--
			l.probe, l.overtaken = nil, time.Time{}
			first.end(replies, nil)
			if demoted && !l.retired {
				l.client.retire()
			}
		}
	}
}

// over is the end of a write or read.
func (l *link) over(busy *bool, err *error) {
	if *busy = false; *err != nil || l.err != nil {
		l.fail(*err)
	}
}

// withdraw ends x unless it was sent. If it was, its place stays, since a reply will come.
func (l *link) withdraw(x *call, why error) bool {
	if !x.done && !x.taken {
		l.calls = slices.DeleteFunc(l.calls, func(other *call) bool { return other == x })
		x.end(nil, unsent(why))
	}
	return x.done
}

// fail ends the link because of err, if any. The callers that write or read notice by
// themselves, and call it again: the calls end only then, since their arguments may still be
// read.
func (l *link) fail(err error) {
	if err != nil && l.err == nil {
		l.err = err
		l.timer.Stop()
		l.cancel()
		c := l.client
		c.links = slices.DeleteFunc(c.links, func(other *link) bool { return other == l })
		if !l.retired && len(l.calls) > 0 && err != errDead {
			c.retire() // the other leads to the same server
		}
		if l.conn != nil {
			go hangUp(l.conn)
		}
	}
	if l.err != nil && !l.writing && !l.reading {
		l.settle()
	}
}

// hangUp closes a connection, in a goroutine of its own, since that may take a while. Redigo does not
// promise that this may be done while others send and receive, but all it does is to close the
// network connection, which makes them fail.
func hangUp(conn redis.Conn) {
	var err error
	defer recovered(&err)
	err = conn.Close()
}

// settle ends the calls of a link that has ended. Those that were not sent go to another, unless
// there was no connection to be had since they came: a dial that had begun before may have met a
// Redis that was not ready yet, or a password that is right by now.
func (l *link) settle() {
	now, calls := time.Now(), l.calls
	l.calls = nil
	for _, x := range calls {
		late := !now.Before(x.deadline)
		switch {
		case x.taken && late:
			x.end(nil, fmt.Errorf("%w: no reply: %w", ErrUnavailable, os.ErrDeadlineExceeded))
		case x.taken: // only the text of err, which may be a timeout, but not this one's
			x.end(nil, fmt.Errorf("%w: the connection broke: %v", ErrUnavailable, l.err))
		case late:
			x.end(nil, unsent(os.ErrDeadlineExceeded))
		case l.conn == nil && l.err != os.ErrDeadlineExceeded && l.err != errDead && !x.since.After(l.begun):
			x.end(nil, unsent(l.err))
		default:
			if l.client.enqueue(x, now); !x.done {
				x.link.mind()
			}
		}
	}
}

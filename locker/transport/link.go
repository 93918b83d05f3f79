package transport

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/gomodule/redigo/redis"
)

// A link is one connection. Its calls wait in queue until somebody writes them,
// and then in flight for their replies, which come in the same order. No goroutine
// is needed for that: one of those that wait writes for all, and one reads.
//
// All fields are guarded by the client's mu, which is not held while somebody
// writes, reads or dials.
type link struct {
	client *Redigo
	cancel context.CancelFunc // of the dial
	conn   redis.Conn         // nil while dialling
	queue  []*call
	flight []*call
	spare  []*call // becomes queue

	writing, reading bool
	large            bool // what is being written may need somebody that reads

	err     error // why it has ended, or will
	refused bool  // nothing was ever sent: there was no connection
	retired error // why it takes no more calls, and ends when it has none

	timer *time.Timer // calls tick
	due   time.Time   // when it does
	used  time.Time   // when the last call came
}

// pipe is what the network takes in, at least. A proxy may stop reading while
// nobody reads from it.
const pipe = 32 << 10

// newLink returns a link that is being dialled, which takes no longer than the
// client's timeout.
func newLink(c *Redigo, now time.Time) *link {
	ctx, cancel := context.WithTimeout(context.Background(), c.timeout)
	l := &link{client: c, cancel: cancel, used: now, due: now.Add(c.timeout)}
	l.timer = time.AfterFunc(c.timeout, l.tick)
	go l.dial(ctx)
	return l
}

func (l *link) dial(ctx context.Context) {
	conn, err := l.client.dial(ctx)
	l.client.mu.Lock()
	defer l.client.mu.Unlock()
	defer l.cancel()
	switch {
	case l.err != nil: // too late
		if err == nil {
			l.conn = conn
			l.close()
		}
	case err != nil:
		l.refused = true
		l.fail(err)
	default:
		l.conn = conn
		l.mind()
	}
}

func (l *link) add(x *call, now time.Time) {
	x.link, x.since, l.used = l, now, now
	l.queue = append(l.queue, x)
	if x.deadline.Before(l.due) {
		l.due = x.deadline
		l.timer.Reset(x.deadline.Sub(now))
	}
}

// stuck reports whether another link should take new calls.
func (l *link) stuck(now time.Time) bool {
	var oldest *call
	switch {
	case len(l.flight) > 0:
		oldest = l.flight[0]
	case len(l.queue) > 0:
		oldest = l.queue[0]
	default:
		return false
	}
	return now.Sub(oldest.since) > l.client.timeout/8
}

// work does what there is to do: for x until it is done, or else until there is
// nothing left to do.
func (l *link) work(x *call) {
	for x == nil || !x.done {
		switch {
		case l.conn == nil || l.err != nil:
			return
		case !l.writing && len(l.queue) > 0:
			l.write()
		case !l.reading && len(l.flight) > 0:
			l.read(x)
		default:
			return
		}
	}
}

// mind sees to it that somebody does what there is to do: one that waits, or else a
// goroutine. Who writes comes back to it, and reads.
func (l *link) mind() {
	write := !l.writing && len(l.queue) > 0
	read := !l.reading && len(l.flight) > 0 && (!l.writing || l.large)
	if l.conn == nil || l.err != nil || !write && !read {
		return
	}
	for _, calls := range [][]*call{l.flight, l.queue} {
		for _, x := range calls {
			if x.waiting && !x.hurried {
				x.signal()
				return
			}
		}
	}
	go func() {
		l.client.mu.Lock()
		defer l.client.mu.Unlock()
		l.work(nil)
	}()
}

// write sends what is in the queue.
func (l *link) write() {
	l.writing = true
	if len(l.flight) > 0 {
		l.client.mu.Unlock()
		runtime.Gosched() // others may come, and share the write
		l.client.mu.Lock()
	}
	batch := l.queue
	l.queue, l.spare = l.spare, nil
	l.flight = append(l.flight, batch...)
	if len(l.flight) > 1 || len(batch) == 1 && len(batch[0].commands) > 1 {
		size := 0
		for _, x := range batch {
			size += x.size()
		}
		if l.large = size > pipe; l.large {
			l.mind()
		}
	}
	l.client.mu.Unlock()
	err := l.send(batch)
	l.client.mu.Lock()
	clear(batch)
	l.spare = batch[:0]
	l.writing, l.large = false, false
	if err != nil {
		l.fail(err)
	}
	l.settle()
}

func (l *link) send(batch []*call) (err error) {
	defer recovered(&err)
	for _, x := range batch {
		x.begun = true
		for _, command := range x.commands {
			if err := l.conn.Send(command[0].(string), command[1:]...); err != nil {
				return err
			}
		}
		x.sent.Store(true)
	}
	return l.conn.Flush()
}

// read receives replies until x has its own, or for the oldest call.
func (l *link) read(x *call) {
	l.reading = true
	for l.err == nil && len(l.flight) > 0 && (x == nil || !x.done) {
		head := l.flight[0]
		l.client.mu.Unlock()
		replies, demoted, err := l.receive(head)
		l.client.mu.Lock()
		if err != nil {
			l.reading = false
			l.fail(err)
			return
		}
		l.flight = slices.Delete(l.flight, 0, 1)
		head.replies = replies
		head.finish(nil)
		if demoted {
			l.client.retire(errDemoted)
		}
		if x == nil {
			break
		}
	}
	l.reading = false
	if l.retired != nil && len(l.flight) == 0 {
		l.fail(l.retired)
	}
	l.settle()
}

// receive returns the replies to the commands of x.
func (l *link) receive(x *call) (replies []any, demoted bool, err error) {
	defer recovered(&err)
	replies = make([]any, len(x.commands))
	for i := range replies {
		reply, err := redis.ReceiveWithTimeout(l.conn, 0) // tick sees to the time
		if refusal, ok := err.(redis.Error); ok {
			replies[i] = refusal
			demoted = demoted || strings.Contains(string(refusal), "READONLY")
		} else if err != nil {
			return nil, false, err
		} else {
			replies[i] = reply
		}
	}
	if !x.sent.Load() {
		return nil, false, errors.New("a reply has come before its command was sent")
	}
	return replies, demoted, nil
}

// recovered makes a panic of redigo, as of a reply that is absurd, an error.
func recovered(err *error) {
	if r := recover(); r != nil {
		*err = fmt.Errorf("a panic: %v", r)
	}
}

// leave ends a call whose caller does not wait any longer. If it was sent, its place
// stays, since its reply will come.
func (l *link) leave(x *call, why error) {
	if i := slices.Index(l.queue, x); i >= 0 {
		l.queue = slices.Delete(l.queue, i, i+1)
		x.finish(Refused(fmt.Errorf("no connection: %w", why)))
	} else if errors.Is(why, context.DeadlineExceeded) && x.hurried {
		x.finish(Unavailable(why))
	}
}

// tick is called when the oldest call may have waited for too long, or the link
// was not used for long.
func (l *link) tick() {
	l.client.mu.Lock()
	defer l.client.mu.Unlock()
	if l.err != nil {
		return
	}
	now := time.Now()
	l.due = l.used.Add(maxIdle)
	idle := true
	for _, calls := range [][]*call{l.flight, l.queue} {
		for _, x := range calls {
			if idle || x.deadline.Before(l.due) {
				l.due = x.deadline
			}
			idle = false
		}
	}
	switch {
	case now.Before(l.due):
		l.timer.Reset(l.due.Sub(now))
	case idle:
		l.fail(errors.New("not used for long"))
	default:
		l.fail(errTimeout)
	}
}

// retire ends the link as soon as it has no more calls. Those that were not sent
// are given to another.
func (l *link) retire(why error) {
	l.retired = why
	queue := l.queue
	l.queue = nil
	l.move(queue)
	if len(l.flight) == 0 {
		l.fail(why)
	}
}

// fail ends the link. It lets go of mu for a moment.
func (l *link) fail(err error) {
	if l.err != nil {
		l.settle()
		return
	}
	l.err = err
	l.timer.Stop()
	l.cancel()
	c := l.client
	c.links = slices.DeleteFunc(c.links, func(other *link) bool { return other == l })
	if len(l.flight)+len(l.queue) > 0 {
		c.retire(err) // the others lead to the same server
	}
	if l.conn != nil {
		l.close()
	}
	l.settle()
}

// close closes the connection, without mu, since that may take a while.
func (l *link) close() {
	l.client.mu.Unlock()
	_ = l.conn.Close()
	l.client.mu.Lock()
}

// settle tells the calls of a link that has ended. It waits until nobody writes or
// reads, since the arguments belong to the callers again then.
func (l *link) settle() {
	if l.err == nil || l.writing || l.reading {
		return
	}
	now := time.Now()
	calls := append(l.flight, l.queue...)
	l.flight, l.queue = nil, nil
	var unsent []*call
	for _, x := range calls {
		late := !now.Before(x.deadline)
		switch {
		case x.begun && late:
			x.finish(Unavailable(fmt.Errorf("no reply: %w", errTimeout)))
		case x.begun:
			x.finish(Unavailable(fmt.Errorf("the connection broke: %v", l.err)))
		case l.refused:
			x.finish(Refused(l.err))
		case late:
			x.finish(Refused(fmt.Errorf("no connection: %w", errTimeout)))
		case !x.done:
			unsent = append(unsent, x)
		}
	}
	l.move(unsent)
}

// move gives calls that were not sent to another link.
func (l *link) move(calls []*call) {
	now := time.Now()
	for _, x := range calls {
		if l.client.enqueue(x, now); !x.done {
			x.link.mind()
		}
	}
}

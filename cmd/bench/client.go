package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// A client is one connection of a visitor's browser, and its cookie. It does not use the client of net/http,
// which would use more CPU time than some of the measured servers.
type client struct {
	host   string
	conn   net.Conn
	reader *bufio.Reader
	out    []byte // the last request, reused for the next
	cookie string // name=value
	forget func() bool

	answers atomic.Int64 // so far
}

// dial connects a client without a session. Its calls fail once ctx ends.
func dial(ctx context.Context, addr string) (*client, error) {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	c := &client{host: addr, conn: conn, reader: bufio.NewReader(conn)}
	c.forget = context.AfterFunc(ctx, func() { _ = conn.Close() })
	return c, nil
}

func (c *client) close() {
	c.forget()
	_ = c.conn.Close() // nothing is under way
}

// call makes one request and returns the number in its response.
func (c *client) call(method, target string) (int, error) {
	c.out = fmt.Appendf(c.out[:0], "%s %s HTTP/1.1\r\nHost: %s\r\n", method, target, c.host)
	if c.cookie != "" {
		c.out = fmt.Appendf(c.out, "Cookie: %s\r\n", c.cookie)
	}
	if method == http.MethodPost {
		c.out = append(c.out, "Content-Length: 0\r\n"...)
	}
	c.out = append(c.out, "\r\n"...)
	_, err := c.conn.Write(c.out)
	var body []byte
	if err == nil {
		body, err = c.answer()
	}
	if err != nil {
		return 0, fmt.Errorf("%s %s: %w", method, target, err)
	}
	c.answers.Add(1)
	return strconv.Atoi(string(body))
}

// answer reads a whole response and returns its body. It understands only what the application sends.
func (c *client) answer() ([]byte, error) {
	line, err := c.line()
	if err != nil {
		return nil, err
	}
	_, status, _ := bytes.Cut(line, []byte(" "))
	ok := bytes.HasPrefix(status, []byte("200 "))
	failure := ""
	if !ok {
		failure = string(status)
	}
	length := -1
	for {
		if line, err = c.line(); err != nil {
			return nil, err
		}
		if len(line) == 0 {
			break
		}
		name, value, _ := bytes.Cut(line, []byte(": "))
		switch string(name) {
		case "Content-Length":
			if length, err = strconv.Atoi(string(value)); err != nil {
				return nil, err
			}
		case "Set-Cookie":
			pair, _, _ := bytes.Cut(value, []byte(";"))
			c.cookie = string(pair)
		}
	}
	if length < 0 {
		return nil, errors.New("the response has no length")
	}
	body := make([]byte, length)
	if _, err := io.ReadFull(c.reader, body); err != nil {
		return nil, err
	}
	if !ok {
		return nil, fmt.Errorf("%s: %s", failure, bytes.TrimSpace(body))
	}
	return body, nil
}

// line reads one line, which is valid until the next call.
func (c *client) line() ([]byte, error) {
	line, err := c.reader.ReadSlice('\n')
	return bytes.TrimRight(line, "\r\n"), err
}

// A crowd is some clients of one application, spread over its processes.
type crowd []*client

// stallAfter is how long a crowd may go without any response. Then the application has stalled, and all calls
// fail with [os.ErrDeadlineExceeded].
const stallAfter = 10 * time.Second

func dialCrowd(ctx context.Context, f fleet, size int) (crowd, error) {
	var c crowd
	for i := range size {
		one, err := dial(ctx, f.addr(i))
		if err != nil {
			c.close()
			return nil, err
		}
		c = append(c, one)
	}
	return c, nil
}

func (c crowd) close() {
	for _, one := range c {
		one.close()
	}
}

// each calls do with every client at the same time, and returns when that began. It reports the first
// client's error: a failure of one client is usually a failure of most.
func (c crowd) each(do func(i int, c *client) error) (began time.Time, err error) {
	if len(c) == 1 {
		return time.Now(), do(0, c[0])
	}
	errs := make([]error, len(c))
	start := make(chan struct{}) // none begins before all are ready
	var ready, group sync.WaitGroup
	for i, one := range c {
		ready.Add(1)
		group.Go(func() {
			ready.Done()
			<-start
			errs[i] = do(i, one)
		})
	}
	ready.Wait()
	began = time.Now()
	close(start)
	group.Wait()
	return began, cmp.Or(errs...)
}

// watch makes the clients' calls fail if no client has got a response for the limit, until stop is called.
func (c crowd) watch(limit time.Duration) (stop func()) {
	done := make(chan struct{})
	var group sync.WaitGroup
	group.Go(func() {
		answers, since := 0, time.Now()
		for {
			select {
			case <-done:
				return
			case <-time.After(limit / 10):
			}
			if n := c.answers(); n != answers {
				answers, since = n, time.Now()
			} else if time.Since(since) >= limit {
				for _, one := range c {
					_ = one.conn.SetDeadline(time.Now()) // if it fails, the connection is closed, which is as good
				}
				return
			}
		}
	})
	return func() {
		close(done)
		group.Wait()
	}
}

// answers returns the number of responses since the clients were dialled.
func (c crowd) answers() int {
	sum := 0
	for _, one := range c {
		sum += int(one.answers.Load())
	}
	return sum
}

// share gives all clients one session.
func (c crowd) share(cookie string) {
	for _, one := range c {
		one.cookie = cookie
	}
}

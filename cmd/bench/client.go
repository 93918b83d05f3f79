package main

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
)

// A client is one visitor's browser: one connection and one cookie. It does
// without http.Transport, whose goroutines would take more of the machine than
// some of the servers that are to be compared.
type client struct {
	host   string
	conn   net.Conn
	reader *bufio.Reader
	cookie string // name=value
	forget func() bool
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

// call makes one request and returns the number that is its answer.
func (c *client) call(method, target string) (int, error) {
	request := make([]byte, 0, 512)
	request = fmt.Appendf(request, "%s %s HTTP/1.1\r\nHost: %s\r\n", method, target, c.host)
	if c.cookie != "" {
		request = fmt.Appendf(request, "Cookie: %s\r\n", c.cookie)
	}
	if method == http.MethodPost {
		request = append(request, "Content-Length: 0\r\n"...)
	}
	request = append(request, "\r\n"...)
	if _, err := c.conn.Write(request); err != nil {
		return 0, err
	}
	answer, err := http.ReadResponse(c.reader, nil)
	if err != nil {
		return 0, fmt.Errorf("%s %s: %w", method, target, err)
	}
	body, err := io.ReadAll(answer.Body)
	_ = answer.Body.Close() // read to its end
	if err != nil {
		return 0, fmt.Errorf("%s %s: %w", method, target, err)
	}
	if answer.StatusCode != http.StatusOK {
		return 0, fmt.Errorf("%s %s: %s: %s", method, target, answer.Status, body)
	}
	if cookie := answer.Header.Get("Set-Cookie"); cookie != "" {
		c.cookie, _, _ = strings.Cut(cookie, ";")
	}
	return strconv.Atoi(string(body))
}

// A crowd is a number of clients of one peer.
type crowd []*client

func dialCrowd(ctx context.Context, addr string, size int) (crowd, error) {
	var c crowd
	for range size {
		one, err := dial(ctx, addr)
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

// all does something with every client at the same time, and returns the first
// client's error: what is wrong with one is wrong with most.
func (c crowd) all(do func(i int, c *client) error) error {
	errs := make([]error, len(c))
	start := make(chan struct{}) // nobody begins before everybody is ready
	var group sync.WaitGroup
	for i, one := range c {
		group.Go(func() {
			<-start
			errs[i] = do(i, one)
		})
	}
	close(start)
	group.Wait()
	return cmp.Or(errs...)
}

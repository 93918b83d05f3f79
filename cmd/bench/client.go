package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"sync/atomic"
)

// A client is one connection of a visitor's browser, and its cookie. It does
// without package http's client, which would take more of the machine than some
// of the servers that are to be compared.
type client struct {
	host   string
	conn   net.Conn
	reader *bufio.Reader
	out    []byte // the last request, to be written over
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

// call makes one request and returns the number that is its answer.
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

// answer reads a whole answer and returns its body. It knows what the app's
// server sends, and nothing else.
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
		return nil, errors.New("the answer has no length")
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

// line reads one line. It is good until the next one is read.
func (c *client) line() ([]byte, error) {
	line, err := c.reader.ReadSlice('\n')
	return bytes.TrimRight(line, "\r\n"), err
}

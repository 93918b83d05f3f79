package redistest

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
)

// errProtocol means that a peer sent something other than RESP2.
var errProtocol = errors.New("not RESP2")

// A message is one value of RESP2, the protocol of Redis: a client's command or
// a server's reply.
type message struct {
	raw   []byte   // as it came, to be passed on unchanged
	bulks []string // the bulk strings in it: for a command, its name and arguments
}

func readMessage(r *bufio.Reader) (message, error) {
	var m message
	err := m.read(r)
	return m, err
}

// read appends the next value to m. An array is a header followed by values, so
// read calls itself for each of them.
func (m *message) read(r *bufio.Reader) error {
	line, err := r.ReadBytes('\n')
	if err != nil {
		return err
	}
	m.raw = append(m.raw, line...)
	body, ok := bytes.CutSuffix(line, []byte("\r\n"))
	if !ok || len(body) == 0 {
		return fmt.Errorf("%w: %q", errProtocol, line)
	}
	switch body[0] {
	case '+', '-', ':': // simple string, error, integer: the line is all
		return nil
	case '$', '*':
	default:
		return fmt.Errorf("%w: %q", errProtocol, line)
	}

	n, err := strconv.Atoi(string(body[1:]))
	if err != nil {
		return fmt.Errorf("%w: %q", errProtocol, line)
	}
	if n < 0 { // null
		return nil
	}
	if body[0] == '$' {
		return m.readBulk(r, n)
	}
	for range n {
		if err := m.read(r); err != nil {
			return err
		}
	}
	return nil
}

// readBulk appends n bytes and the line end after them.
func (m *message) readBulk(r *bufio.Reader, n int) error {
	begin := len(m.raw)
	m.raw = slices.Grow(m.raw, n+2)[:begin+n+2]
	if _, err := io.ReadFull(r, m.raw[begin:]); err != nil {
		return err
	}
	m.bulks = append(m.bulks, string(m.raw[begin:begin+n]))
	return nil
}

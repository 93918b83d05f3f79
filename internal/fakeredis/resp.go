package fakeredis

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strconv"
)

// The largest command that ReadCommand accepts.
const (
	maxArgs = 1 << 16
	maxSize = 64 << 20 // bytes of all arguments
)

// ErrProtocol is the error of a command that is not RESP2, or too large.
var ErrProtocol = errors.New("not a command in RESP2")

// AppendTo appends the reply in RESP2.
func (r Reply) AppendTo(b []byte) []byte {
	switch r.kind {
	case KindSimple:
		return appendLine(b, '+', r.text)
	case KindError:
		return appendLine(b, '-', r.text)
	case KindInt:
		return appendHead(b, ':', r.n)
	case KindBulk:
		b = appendHead(b, '$', int64(len(r.text)))
		return append(append(b, r.text...), "\r\n"...)
	case KindArray:
		b = appendHead(b, '*', int64(len(r.list)))
		for _, element := range r.list {
			b = element.AppendTo(b)
		}
		return b
	default:
		return append(b, "$-1\r\n"...)
	}
}

func appendHead(b []byte, kind byte, n int64) []byte {
	return append(strconv.AppendInt(append(b, kind), n, 10), "\r\n"...)
}

func appendLine(b []byte, kind byte, text string) []byte {
	return append(append(append(b, kind), text...), "\r\n"...)
}

// ReadCommand reads a command: an array of bulk strings. It returns io.EOF only if the input ends before
// a command.
func ReadCommand(r *bufio.Reader) ([]string, error) {
	if _, err := r.Peek(1); err != nil {
		return nil, err
	}
	n, err := readHead(r, '*', maxArgs)
	if err != nil {
		return nil, err
	}
	var args []string
	left := maxSize
	for range n {
		size, err := readHead(r, '$', left)
		if err != nil {
			return nil, err
		}
		left -= size
		text := make([]byte, size+2)
		if _, err := io.ReadFull(r, text); err != nil {
			return nil, unfinished(err)
		}
		if text[size] != '\r' || text[size+1] != '\n' {
			return nil, fmt.Errorf("%w: %q behind a string", ErrProtocol, text[size:])
		}
		args = append(args, string(text[:size]))
	}
	return args, nil
}

// readHead reads the length of an array or a string, from 0 to most.
func readHead(r *bufio.Reader, kind byte, most int) (int, error) {
	line, err := r.ReadSlice('\n')
	if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
		return 0, unfinished(err)
	}
	if len(line) < 4 || line[0] != kind || line[len(line)-2] != '\r' || err != nil {
		return 0, fmt.Errorf("%w: %.20q where %c and a length belong", ErrProtocol, line, kind)
	}
	n, err := strconv.Atoi(string(line[1 : len(line)-2]))
	if err != nil || n < 0 || n > most {
		return 0, fmt.Errorf("%w: the length %.20q", ErrProtocol, line)
	}
	return n, nil
}

func unfinished(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

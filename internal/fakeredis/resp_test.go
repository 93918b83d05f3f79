package fakeredis

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
)

func TestReadCommand(t *testing.T) {
	long := strings.Repeat("x", 10_000)
	r := bufio.NewReader(strings.NewReader("*2\r\n$3\r\nGET\r\n$4\r\na\r\nb\r\n*1\r\n$10000\r\n" + long + "\r\n*0\r\n"))
	for _, want := range []string{`["GET" "a\r\nb"]`, fmt.Sprintf("[%q]", long), "[]"} {
		if got, err := ReadCommand(r); fmt.Sprintf("%q", got) != want || err != nil {
			t.Errorf("%.40q %v", got, err)
		}
	}
	if _, err := ReadCommand(r); err != io.EOF {
		t.Error("at the end:", err)
	}
	for input, want := range map[string]error{"*1\r\n$3\r\nGE": io.ErrUnexpectedEOF, "GET k\r\n": ErrProtocol, "*65537\r\n": ErrProtocol} {
		if got, err := ReadCommand(bufio.NewReader(strings.NewReader(input))); got != nil || !errors.Is(err, want) {
			t.Errorf("%q: %q, %v", input, got, err)
		}
	}
}

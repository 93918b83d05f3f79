package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
)

// fromInput stands for IDs on stdin, in place of an ID.
const fromInput = "-"

// readIDs reads the IDs from stdin if the command line says so. All lines are checked before the command starts.
func (o *options) readIDs(ctx context.Context, stdin io.Reader) error {
	if len(o.ids) != 1 || o.ids[0] != fromInput {
		return nil
	}
	type input struct {
		ids []string
		err error
	}
	read := make(chan input, 1)
	go func() { // goes on after an interrupt, until the process ends
		ids, err := idsIn(stdin)
		read <- input{ids, err}
	}()
	select {
	case in := <-read:
		o.ids = in.ids
		return in.err
	case <-ctx.Done():
		return errInterrupted
	}
}

var errInterrupted = errors.New("interrupted")

// idsIn returns the IDs in a text, one a line. Lines may be blank.
func idsIn(text io.Reader) (ids []string, _ error) {
	lines := bufio.NewScanner(text)
	n := 1
	for ; lines.Scan(); n++ {
		switch id := strings.TrimSpace(lines.Text()); {
		case id == "":
		case !isID(id):
			return nil, usage("line %d of stdin: %v; no session was touched", n, notAnID(id))
		default:
			ids = append(ids, id)
		}
	}
	if err := lines.Err(); errors.Is(err, bufio.ErrTooLong) {
		return nil, usage("line %d of stdin is too long to be a session's ID; no session was touched", n)
	} else if err != nil {
		return nil, fmt.Errorf("stdin: %w", err)
	}
	return ids, nil
}

// notAnID does not repeat the argument, which may be the secret of a cookie, or a URL.
func notAnID(arg string) error {
	const characters = "letters, digits, - and _"
	wrong := func(format string, args ...any) error {
		return fmt.Errorf("an argument of %s is no session's ID: %s", plural(int64(len(arg)), "byte"), fmt.Sprintf(format, args...))
	}
	switch {
	case len(arg) == tagLength+len(".")+ownLength:
		return wrong("an ID of %d bytes has a dot after %d %s, and then %d of them", len(arg), tagLength, characters, ownLength)
	case len(arg) == idLength && isBase64(arg):
		return wrong("an ID of %d bytes ends with A, Q, g or w", idLength)
	case len(arg) == idLength:
		return wrong("an ID has only %s", characters)
	}
	return wrong("an ID has %d bytes, or %d if the session is a user's", idLength, tagLength+len(".")+ownLength)
}

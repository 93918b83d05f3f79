package store

import (
	"errors"
	"strings"
	"testing"
)

// A reply that no script gives is an outage: some other thing answers there.
func TestUnexpectedReplies(t *testing.T) {
	t.Parallel()
	for name, reply := range map[string]any{
		"nil":                    nil,
		"a number":               int64(1),
		"a string":               []byte("OK"),
		"an empty array":         []any{},
		"no state":               []any{[]byte("x")},
		"an unknown state":       []any{int64(99)},
		"found, but no more":     []any{int64(stateFound)},
		"found, others not told": []any{int64(stateFound), []byte("x")},
		"found, no others":       []any{int64(stateFound), []byte("x"), []byte("y")},
		"too large, no size":     []any{int64(stateTooLarge)},
		"too large, no name":     []any{int64(stateTooLarge), int64(9)},
		"busy, but no more":      []any{int64(stateBusy)},
	} {
		got, err := taken(reply, nil)
		if !errors.Is(err, ErrUnavailable) || got.Taken {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
	for name, reply := range map[string]any{
		"nil": nil, "a string": []byte("1"), "an array": []any{int64(1)}, "a number that is none of them": int64(4),
	} {
		if others, err := committed(reply, nil); others || !errors.Is(err, ErrUnavailable) {
			t.Errorf("a commit, %s: %v, %v", name, others, err)
		}
	}
	outage := errors.New("outage")
	if _, err := taken(nil, outage); err != outage {
		t.Errorf("error %v, want that of the exchange", err)
	}
	if raw, err := found([]any{int64(stateFound), []byte("x")}, nil); string(raw) != "x" || err != nil {
		t.Errorf("found: %q, %v", raw, err)
	}
	if held, err := taken([]any{int64(stateBusy), []byte("")}, nil); held.Taken || err != nil {
		t.Errorf("busy: %v, %v", held, err)
	}
}

// Each script says at its top what it takes: KEYS, ARGV, and what it returns.
func TestScriptHeaders(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		takeText, loadText, commitText, extendText, createText, replaceText, dropText,
	} {
		head, _, _ := strings.Cut(text, "\nlocal ")
		for _, want := range []string{"KEYS[1] record", "ARGV[1] ", "Returns "} {
			if !strings.HasPrefix(text, "-- ") || !strings.Contains(head, want) {
				t.Errorf("no %q in the header of: %s", want, firstLine(text))
			}
		}
	}
}

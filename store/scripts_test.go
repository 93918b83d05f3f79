package store

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/internal/scripting"
	"github.com/a2139e8d/latchkey/locker/transport"
)

// A reply that no script gives is an outage: some other thing answers there.
func TestUnexpectedReplies(t *testing.T) {
	t.Parallel()
	runner := scripting.NewRunner(transport.NewRedigo(redistest.Embedded(t).Pool(t, 1), patient.Timeout), patient.Timeout)
	replyOf := func(lua string) (reply scripting.Reply) {
		if lua != "" {
			var err error
			if reply, err = runner.Run(t.Context(), scripting.NewScript("return "+lua), nil); err != nil {
				t.Fatal(err)
			}
		}
		return reply
	}
	k := &taking{store: &Store{}, terms: new(Terms)}
	for name, lua := range map[string]string{
		"nil":                   "",
		"a number":              "1",
		"an empty array":        "{}",
		"no state":              "{'x'}",
		"an unknown state":      "{99}",
		"found, but no more":    "{1}",
		"found, others missing": "{1, 'x'}",
		"found, no others":      "{1, 'x', 'y'}",
		"too large, no size":    "{4}",
		"too large, no name":    "{4, 9}",
		"busy, but no more":     "{0}",
		"busy, left no number":  "{0, 'x', 'y'}",
	} {
		got, err := k.taken(replyOf(lua), "token", time.Now())
		if !errors.Is(err, ErrUnavailable) || got.Taken {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
	for name, lua := range map[string]string{"nil": "", "an array": "{1}"} {
		if others, err := committed(replyOf(lua), nil); others || !errors.Is(err, ErrUnavailable) {
			t.Errorf("a commit, %s: %v, %v", name, others, err)
		}
	}
	outage := errors.New("outage")
	if _, err := committed(scripting.Reply{}, outage); err != outage {
		t.Errorf("error %v, want that of the exchange", err)
	}
	if text, err := found(replyOf("{1, 'x'}")); string(text) != "x" || err != nil {
		t.Errorf("found: %q, %v", text, err)
	}
	if held, err := k.taken(replyOf("{0, ''}"), "token", time.Now()); held.Taken || err != nil {
		t.Errorf("busy: %v, %v", held, err)
	}
}

// Each script says at its top what it takes: KEYS, ARGV, and what it returns.
func TestScriptHeaders(t *testing.T) {
	t.Parallel()
	files, err := texts.ReadDir(".")
	if err != nil || len(files) != 15 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		if slices.Contains([]string{"record.lua", "times.lua", "user.lua"}, file.Name()) {
			continue // what the others include
		}
		raw, err := texts.ReadFile(file.Name())
		if err != nil {
			t.Fatal(err)
		}
		text := string(raw)
		head, _, _ := strings.Cut(text, "\nlocal ")
		first := "KEYS[1] record"
		if file.Name() == "endall.lua" || file.Name() == "lost.lua" {
			first = "KEYS[1] list"
		}
		for _, want := range []string{first, "ARGV[1] ", "Returns "} {
			if !strings.HasPrefix(text, "-- ") || !strings.Contains(head, want) {
				t.Errorf("no %q in the header of: %s", want, firstLine(text))
			}
		}
	}
}

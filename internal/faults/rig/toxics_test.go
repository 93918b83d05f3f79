package rig

import (
	"fmt"
	"strings"
	"testing"

	"github.com/Shopify/toxiproxy/v2/stream"
	"github.com/Shopify/toxiproxy/v2/toxics"
)

// pass sends pieces through a toxic, and returns what comes out until the link ends.
func pass(toxic toxics.Toxic, pieces ...string) (got []string) {
	in, out := make(chan *stream.StreamChunk, len(pieces)), make(chan *stream.StreamChunk, 10*len(pieces))
	for _, piece := range pieces {
		in <- &stream.StreamChunk{Data: []byte(piece)}
	}
	close(in)
	toxic.Pipe(toxics.NewToxicStub(in, out))
	for c := range out {
		got = append(got, string(c.Data))
		clear(c.Data) // a repeated piece must be a copy
	}
	return got
}

func TestToxics(t *testing.T) {
	pieces := []string{"one", "two", "three", "four", "five", "six"}
	for _, tt := range []struct {
		what     string
		toxic    toxics.Toxic
		want     string
		happened int64
	}{
		{"each twice", &repeat{Every: 1}, "one one two two three three four four five five six six", 6},
		{"by default, too", &repeat{}, "one one two two three three four four five five six six", 6},
		{"one in two twice", &repeat{Every: 2}, "one two two three four four five six six", 3},
		{"one in three again, a piece later", &repeat{Every: 3, Later: 1}, "one two three four three five six", 1},
		{"again, two pieces later", &repeat{Every: 2, Later: 2}, "one two three four two five six", 1},
		{"never torn", &tear{Every: 7}, "one two three four five six", 0},
		{"torn at the third", &tear{Every: 3}, "one two th", 1},
		{"torn at once, after nothing", &tear{Every: 1}, "o", 1},
		{"recorded", &record{}, "one two three four five six", 0},
		{"delayed", &delay{Ms: 1}, "one two three four five six", 0},
	} {
		if got := strings.Join(pass(tt.toxic, pieces...), " "); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.what, got, tt.want)
		}
		if c, counts := tt.toxic.(interface{ times() int64 }); counts && c.times() != tt.happened {
			t.Errorf("%s: it happened %d times, want %d", tt.what, c.times(), tt.happened)
		}
		if r, records := tt.toxic.(*record); records && string(r.bytes) != strings.Join(pieces, "") {
			t.Errorf("%s: %q", tt.what, r.bytes)
		}
	}
}

func TestRepeatLines(t *testing.T) {
	got := strings.Join(pass(&repeat{Every: 2, Lines: 2}, "1\n2\n3\n4\n5\n", "6\n7\n8"), "|")
	if want := "1\n2\n|3\n4\n|3\n4\n|5\n|6\n7\n|6\n7\n|8"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// What a stall has kept comes when it is removed, in order.
func TestStall(t *testing.T) {
	in, out := make(chan *stream.StreamChunk), make(chan *stream.StreamChunk, 10)
	stub, s, ended := toxics.NewToxicStub(in, out), &stall{}, make(chan bool)
	go func() {
		s.Pipe(stub)
		close(ended)
	}()
	for _, piece := range []string{"one", "two"} {
		in <- &stream.StreamChunk{Data: []byte(piece)}
	}
	close(in)
	if len(out) > 0 {
		t.Error("something came through")
	}
	stub.Interrupt <- struct{}{}
	<-ended
	var got []string
	for len(out) > 0 {
		if c := <-out; c != nil {
			got = append(got, string(c.Data))
		}
	}
	if fmt.Sprint(got) != "[one two]" || s.times() != 2 {
		t.Errorf("%q came of %d pieces", got, s.times())
	}
}

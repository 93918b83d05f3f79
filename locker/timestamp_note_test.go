package locker

import (
	"errors"
	"strconv"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/lease"
	"github.com/a2139e8d/latchkey/internal/redistest"
)

// The note is beside the lock: who set it, to which value, and how.
func TestTimestampNote(t *testing.T) {
	onServers(t, func(t *testing.T, server *redistest.Server) {
		for way, stale := range map[string]string{"f": "", "s": longAgo} {
			if stale != "" {
				server.Do(t, "SET", "k", stale)
			}
			l := mustTake(t, newTimestamp(t, server, patient), "k")
			for range 2 {
				value, _ := server.Get(t, "k")
				note, _ := server.Get(t, "{k}.owner")
				if want := value + " " + way + " " + (*lease.Lease)(l).Token(); note != want {
					t.Errorf("the note is %q, want %q", note, want)
				}
				mustExtend(t, l)
			}
			mustUnlock(t, l)
			if keys := server.Keys(t); len(keys) != 0 {
				t.Errorf("left behind: %q", keys)
			}
		}
	})
}

// In a cluster a script may only touch keys of one slot.
func TestTimestampNoteKey(t *testing.T) {
	t.Parallel()
	server := redistest.NewCluster(t, 1, 0).Nodes[0]
	for key, want := range map[string]string{
		"k":              "{k}.owner",
		"{k}":            "{k}:owner", // another lock, so another note
		"app:job":        "{app:job}.owner",
		"{id}.lock":      "{id}.lock:owner",
		"app:{id}.lock":  "app:{id}.lock:owner",
		"a{b}{c}":        "a{b}{c}:owner",
		"open{":          "{open{}.owner",
		"a{b":            "{a{b}.owner",
		"{{id}.lock":     "{{id}.lock:owner",
		"{id}}.lock":     "{id}}.lock:owner",
		"app:{id}.{lock": "app:{id}.{lock:owner",
	} {
		note := noteKey(key)
		if note != want {
			t.Errorf("the note of %s is %s, want %s", key, note, want)
		}
		if a, b := server.Do(t, "CLUSTER", "KEYSLOT", key), server.Do(t, "CLUSTER", "KEYSLOT", note); a != b {
			t.Errorf("%s is in slot %d, %s in slot %d", key, a, note, b)
		}
	}
}

// Who waits for a process learns who that is.
func TestTimestampOwner(t *testing.T) {
	onServers(t, func(t *testing.T, server *redistest.Server) {
		ctx := WithLabel(t.Context(), "POST /cart")
		l, err := newTimestamp(t, server, patient).Lock(ctx, "k")
		if err != nil {
			t.Fatal(err)
		}
		var held *HeldError
		if err := wantHeld(t, server, "k"); !errors.As(err, &held) || held.Owner.Label != "POST /cart" {
			t.Errorf("error %v, want one that names the owner", err)
		}
		mustUnlock(t, l)
	})
}

// A note only speaks for the value that it was made for: once a peer has taken the
// lock, nobody is told that the process before has it. What is no note at all is
// none.
func TestTimestampOldNote(t *testing.T) {
	onServers(t, func(t *testing.T, server *redistest.Server) {
		value := strconv.FormatInt(time.Now().Add(time.Hour).UnixMilli(), 10)
		owner := token("")(time.Now().UnixMilli())
		for _, note := range []string{longAgo + " f " + owner, longAgo + " s " + owner, value, "hello", ""} {
			server.Do(t, "SET", "k", value)
			server.Do(t, "SET", noteKey("k"), note)
			if err := wantHeld(t, server, "k"); errors.Is(err, ErrForeign) || errors.As(err, new(*HeldError)) {
				t.Errorf("note %q: error %v, want a mere time-out", note, err)
			}
		}
	})
}

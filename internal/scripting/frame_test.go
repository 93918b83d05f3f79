package scripting

import (
	"errors"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/a2139e8d/latchkey/testdata/redistest"
)

// A reply that arrives twice is never taken for another's. Those behind it try again,
// on another connection.
func TestReplyTwiceInABatch(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		p := newPuppet(t, 1)
		w, a, b, c := batch(t, p, t.Context())
		w.answer("a", "a", "b", "c")
		a.wantReply()
		w = p.accept()
		w.serve("b", "c")
		b.wantReply()
		c.wantReply()
	})
}

// The second one may also arrive when nobody waits for anything.
func TestReplyTwiceBetweenBatches(t *testing.T) {
	for name, late := range map[string]bool{"at once": false, "late": true} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				p := newPuppet(t, 1)
				a := p.ask(t.Context(), "a")
				w := p.accept()
				w.wantCommands("a")
				if late {
					w.answer("a")
					a.wantReply()
					go w.answer("a") // it lasts until somebody reads it
				} else {
					w.answer("a", "a")
					a.wantReply()
				}
				synctest.Wait()
				b := p.ask(t.Context(), "b")
				go w.wantCommands("b")
				w = p.accept()
				w.serve("b")
				b.wantReply()
			})
		})
	}
}

// Redis says twice that it does not know the script. EVAL is never told that, so the
// second one is a stray, too.
func TestNoScriptTwice(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		p := newPuppet(t, 1)
		a := p.ask(t.Context(), "a")
		w := p.accept()
		w.wantCommands("a")
		w.say("-NOSCRIPT no\r\n-NOSCRIPT no\r\n")
		go w.wantCommands("a")
		w = p.accept()
		w.serve("a")
		a.wantReply()
	})
}

// What scripts answer comes through the frame as it is: arrays, small numbers and
// errors, their own and those of commands.
func TestFrameOfReplies(t *testing.T) {
	onServers(t, func(t *testing.T, server *redistest.Server) {
		client := OverPool(server.Pool(t, 1), time.Minute)
		for text, want := range map[string]any{
			"return 0":                int64(0),
			"return 3":                int64(3),
			"return {}":               []any{},
			"return {1, 'a', {2}, 5}": []any{int64(1), []byte("a"), []any{int64(2)}, int64(5)},
		} {
			got, err := client.Run(t.Context(), NewScript(text), []string{"k"})
			if !reflect.DeepEqual(got.value, want) || err != nil {
				t.Errorf("%s: %v, %v", text, got, err)
			}
		}
		server.Do(t, "SET", "k", "a string")
		for _, text := range []string{
			"return redis.call('LPUSH', KEYS[1], 'v')",
			"return redis.pcall('LPUSH', KEYS[1], 'v')",
			"return redis.error_reply('WRONGTYPE, it says')",
		} {
			_, err := client.Run(t.Context(), NewScript(text), []string{"k"})
			if !errors.Is(err, ErrUnavailable) || !strings.Contains(err.Error(), "WRONGTYPE") || Ambiguous(err) {
				t.Errorf("%s: %v", text, err)
			}
		}
	})
}

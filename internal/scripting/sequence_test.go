package scripting

import (
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/locker/transport"
	"github.com/gomodule/redigo/redis"
)

// A reply with another number is another's. The connections are given up, and the exchange is repeated.
func TestStray(t *testing.T) {
	t.Parallel()
	for name, stray := range map[string]any{
		"an array":    []any{"another's", int64(7)},
		"no number":   []any{"another's"},
		"nothing":     []any{},
		"of a number": int64(4*7 + 1),
		"nil":         nil,
		"text":        "OK",
	} {
		t.Run(name, func(t *testing.T) {
			f := knows(func(n int, _ []transport.Command, next func() ([]any, error)) ([]any, error) {
				if n == 1 {
					return []any{stray}, nil
				}
				return next()
			})
			wantEcho(t, f, 2)
			if f.resets != 1 || f.number(2) >= 0 {
				t.Errorf("%d resets, and the number %d", f.resets, f.number(2))
			}
		})
	}
}

// Redis says twice that it does not know the script. EVAL is never told that, so the second one is a
// stray, too.
func TestNoScriptTwice(t *testing.T) {
	t.Parallel()
	f := knows(func(n int, _ []transport.Command, next func() ([]any, error)) ([]any, error) {
		if n <= 2 {
			return []any{errors.New("NOSCRIPT no")}, nil
		}
		return next()
	})
	wantEcho(t, f, 3)
	if f.resets != 1 {
		t.Errorf("%d resets", f.resets)
	}
}

// Many find out at the same time that a connection is no good. It is given up once: what they meet
// then is another.
func TestStraysResetOnce(t *testing.T) {
	t.Parallel()
	var all, begun sync.WaitGroup
	begun.Add(20)
	f := knows(func(n int, _ []transport.Command, next func() ([]any, error)) ([]any, error) {
		if n <= 20 {
			begun.Done()
			begun.Wait()
			return []any{nil}, nil
		}
		return next()
	})
	r := NewRunner(f, time.Minute)
	for range 20 {
		all.Go(func() {
			if _, err := r.Run(t.Context(), echo, nil, "word"); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if f.resets != 1 {
		t.Errorf("%d resets", f.resets)
	}
}

// The same over a real connection, behind a fault that makes a reply arrive twice: nobody gets another's,
// and all have their own in the end.
func TestReplyArrivesTwice(t *testing.T) {
	t.Parallel()
	server := redistest.Real(t)
	var mu sync.Mutex
	dials := 0
	client := transport.NewRedigo(&redis.Pool{Dial: func() (redis.Conn, error) {
		mu.Lock()
		defer mu.Unlock()
		conn, err := net.Dial("tcp", server.Addr)
		if dials++; dials < 4 {
			conn = &stutter{Conn: conn, at: 10}
		}
		return redis.NewConn(conn, 0, 0), err
	}}, time.Minute)
	defer client.Close()
	r := NewRunner(client, time.Minute)
	var all sync.WaitGroup
	for i := range 10 {
		all.Go(func() {
			for n := range 50 {
				want := fmt.Sprint(i, " ", n)
				reply, err := r.Run(t.Context(), echo, Keys{"k"}, want)
				if got, _ := reply.TextAt(0); err == nil && got != want {
					t.Errorf("asked for %q, got %q", want, got)
				} else if err != nil && !Ambiguous(err) && !strings.Contains(err.Error(), "NOSCRIPT") {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	if dials != 4 {
		t.Errorf("%d connections, want three for the doubled replies, and one that is whole", dials)
	}
}

// A stutter says twice what one of its reads has got.
type stutter struct {
	net.Conn
	at    int
	again []byte
}

func (s *stutter) Read(p []byte) (int, error) {
	if len(s.again) > 0 {
		n := copy(p, s.again)
		s.again = s.again[n:]
		return n, nil
	}
	n, err := s.Conn.Read(p)
	if s.at--; s.at == 0 {
		s.again = append([]byte(nil), p[:n]...)
	}
	return n, err
}

// What scripts answer comes back as it is: arrays, small numbers and errors, their own and those of
// commands.
func TestReplies(t *testing.T) {
	t.Parallel()
	redistest.EachInRealTime(t, func(t *testing.T, server *redistest.Server) {
		client := transport.NewRedigo(server.Pool(t, 1), time.Minute)
		defer client.Close()
		r := NewRunner(client, time.Minute)
		for text, want := range map[string]string{
			"return 0":                  "0",
			"return 3":                  "3",
			"return {}":                 "[]",
			"return {1, 'a', {2}, 5}":   "[1 a [2] 5]",
			"return {#KEYS, #ARGV - 1}": "[1 2]",
			"return {KEYS[1], ARGV[2]}": "[k -5]",
			// With a part that numbers its result itself, and gives one or none.
			"if KEYS[1] then return 4 * ARGV[#ARGV] + 2 end\n-- framed from here\nreturn 1":            "2",
			"local k = KEYS[1] if not k then return 0 end\n-- framed from here\nreturn {k}":            "[k]",
			"local k = KEYS[1] if not k then return 0 end\n-- framed from here\nreturn #k + #ARGV - 1": "3",
		} {
			reply, err := r.Run(t.Context(), NewScript(text), Keys{"k"}, []byte("b"), -5)
			got := show(reply.values)
			if n, ok := reply.Int(); ok {
				got = show(n)
			}
			if err != nil || got != want {
				t.Errorf("%s: %s, %v", text, got, err)
			}
		}
		server.Do(t, "SET", "k", "a string")
		for _, text := range []string{
			"return redis.call('LPUSH', KEYS[1], 'v')",
			"return redis.pcall('LPUSH', KEYS[1], 'v')",
			"return redis.error_reply('WRONGTYPE, it says')",
		} {
			_, err := r.Run(t.Context(), NewScript(text), Keys{"k"})
			if !errors.Is(err, transport.ErrRefused) || !strings.Contains(err.Error(), "WRONGTYPE") || Ambiguous(err) {
				t.Errorf("%s: %v", text, err)
			}
		}
	})
}

func show(v any) string {
	switch v := v.(type) {
	case []byte:
		return string(v)
	case []any:
		var parts []string
		for _, part := range v {
			parts = append(parts, show(part))
		}
		return "[" + strings.Join(parts, " ") + "]"
	}
	return fmt.Sprint(v)
}

// After a restart Redis knows no scripts, and the connection is dead. Of a crowd that comes then,
// nobody notices.
func TestCrowdAfterRestart(t *testing.T) {
	t.Parallel()
	redistest.EachInRealTime(t, func(t *testing.T, server *redistest.Server) {
		client := transport.NewRedigo(server.Pool(t, 1), time.Minute)
		defer client.Close()
		r := NewRunner(client, time.Minute)
		for range 3 {
			var all sync.WaitGroup
			for i := range 64 {
				all.Go(func() {
					reply, err := r.Run(t.Context(), echo, Keys{"k"}, i)
					if got, _ := reply.IntAt(0); got != int64(i) || err != nil {
						t.Errorf("%d: %d, %v", i, got, err)
					}
				})
			}
			all.Wait()
			server.Restart(t)
		}
	})
}

// A Reply is read as what it is, whichever client it came from.
func TestReply(t *testing.T) {
	t.Parallel()
	r := Reply{values: []any{int64(1), "2", []byte("three"), nil, "text"}}
	if n, ok := r.IntAt(0); n != 1 || !ok {
		t.Errorf("a number: %d, %v", n, ok)
	}
	if n, ok := r.IntAt(1); n != 2 || !ok {
		t.Errorf("the text of a number: %d, %v", n, ok)
	}
	for i, want := range map[int]string{1: "2", 2: "three", 4: "text"} {
		text, ok := r.TextAt(i)
		bytes, also := r.BytesAt(i)
		if text != want || string(bytes) != want || !ok || !also {
			t.Errorf("value %d: %q, %q", i, text, bytes)
		}
	}
	for _, i := range []int{0, 3, 5} {
		if _, ok := r.TextAt(i); ok {
			t.Errorf("value %d is text", i)
		}
		if _, ok := r.BytesAt(i); ok {
			t.Errorf("value %d is bytes", i)
		}
	}
	for _, i := range []int{2, 3, 5} {
		if _, ok := r.IntAt(i); ok {
			t.Errorf("value %d is a number", i)
		}
	}
	if _, ok := r.Int(); ok || r.Len() != 5 {
		t.Errorf("%v is a number, or has %d values", r, r.Len())
	}
	if n, ok := (Reply{number: int64(3)}).Int(); n != 3 || !ok || (Reply{number: int64(3)}).Len() != 0 {
		t.Errorf("%d, %v", n, ok)
	}
}

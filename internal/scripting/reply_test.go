package scripting

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/memnet"
	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/locker/transport"
	"github.com/gomodule/redigo/redis"
)

// A reply with another number belongs to another call. So does NOSCRIPT as the reply to a script that was sent by
// its text. The connections are given up, and the round trip is repeated.
func TestStray(t *testing.T) {
	t.Parallel()
	for name, tries := range map[string][]any{
		"an array":       {[]any{[]any{"another's", int64(7)}}},
		"no number":      {[]any{[]any{"another's"}}},
		"nothing":        {[]any{[]any{}}},
		"a number":       {[]any{int64(4*7 + 1)}},
		"nil":            {[]any{nil}},
		"text":           {[]any{"OK"}},
		"NOSCRIPT twice": {refusal("NOSCRIPT no"), refusal("NOSCRIPT no")},
	} {
		t.Run(name, func(t *testing.T) {
			f := knows(meets(tries...))
			wantEcho(t, f, len(tries)+1)
			if f.wantRepetitions(t, len(tries)+1); f.resets != 1 {
				t.Errorf("%d resets", f.resets)
			}
		})
	}
}

// The number comes behind the last reply. If it is not there, one of the replies belongs to another call.
func TestNumbered(t *testing.T) {
	t.Parallel()
	refusal := errors.New("NOPERM this user has no permissions")
	for name, tt := range map[string]struct {
		replies func(number any) []any
		want    error
		resets  int
	}{
		"the usual":                     {func(n any) []any { return []any{int64(1), "record", n} }, nil, 0},
		"the last is refused":           {func(n any) []any { return []any{int64(1), refusal, n} }, nil, 0},
		"another number":                {func(any) []any { return []any{int64(1), "record", "7"} }, errStray, 1},
		"a reply that came twice":       {func(any) []any { return []any{int64(7), int64(1), "record"} }, errStray, 1},
		"another's, behind the first":   {func(any) []any { return []any{int64(1), "another's record", "record"} }, errStray, 1},
		"no number":                     {func(any) []any { return []any{int64(1), "record", nil} }, errStray, 1},
		"an earlier command is refused": {func(n any) []any { return []any{refusal, "record", n} }, transport.ErrRefused, 0},
		"the number is refused":         {func(any) []any { return []any{int64(1), "record", refusal} }, transport.ErrRefused, 0},
	} {
		f := &fake{do: func(x exchange) ([]any, error) {
			if ping := x.commands[2]; ping[0] != "PING" {
				t.Errorf("%s: %v, want PING as the last command", name, x.commands)
			}
			return tt.replies(fmt.Sprint(x.commands[2][1])), nil
		}}
		replies, err := NewRunner(f, time.Second).RoundTripNumbered(t.Context(), "slot",
			transport.Command{"PEXPIRE", "key", 1}, transport.Command{"GET", "key"})
		if !errors.Is(err, tt.want) || f.resets != tt.resets {
			t.Errorf("%s: %v and %d resets, want %v and %d", name, err, f.resets, tt.want, tt.resets)
		}
		if err == nil && (len(replies) != 2 || replies[0] != int64(1) || replies[1] == nil) {
			t.Errorf("%s: %v", name, replies)
		}
	}
}

// On one connection a reply arrives twice. Later Redis restarts, and knows no scripts. No call of a crowd gets
// another's reply, or an error. Many calls find out at once that the connection is unusable, and it is given up
// once.
func TestACrowdGetsItsReplies(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, server *redistest.Server) {
		again := 5 // which read is repeated
		client := transport.NewRedigo(&redis.Pool{DialContext: func(ctx context.Context) (redis.Conn, error) {
			conn, err := memnet.DialContext(ctx, "tcp", server.Addr)
			conn, again = &stutter{Conn: conn, at: again}, 0
			return redis.NewConn(conn, 0, 0), err
		}}, time.Minute)
		defer client.Close()
		r := NewRunner(client, time.Minute)
		for range 3 {
			var all sync.WaitGroup
			for i := range 64 {
				all.Go(func() {
					for n := range 5 {
						want := fmt.Sprint(i, " ", n)
						reply, err := r.Run(t.Context(), echo, Keys{"k"}, want)
						if got, _ := reply.TextAt(0); err != nil || got != want {
							t.Errorf("asked for %q, got %q, %v", want, got, err)
						}
					}
				})
			}
			all.Wait()
			server.Restart(t)
		}
		if r.resets.Load() != 1 {
			t.Errorf("%d resets, want one for the doubled reply", r.resets.Load())
		}
	})
}

// A stutter delivers the result of one read twice.
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

// The results of scripts come back unchanged: arrays, small numbers, and errors, of the scripts themselves and of
// their commands.
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
			"return {KEYS[1], ARGV[3]}": "[k -5]",
			// The "first" part of this script numbers its result itself, or returns none.
			`{{define "first"}}if KEYS[1] then return 4 * ARGV[1] + 2 end {{end}}return 1`:                "2",
			`{{define "first"}}local k = KEYS[1] if not k then return 0 end {{end}}return {k}`:            "[k]",
			`{{define "first"}}local k = KEYS[1] if not k then return 0 end {{end}}return #k + #ARGV - 1`: "3",
		} {
			reply, err := r.Run(t.Context(), NewScript(inFrame(text)), Keys{"k"}, []byte("b"), -5)
			for i, v := range reply.values {
				if text, ok := Text(v); ok {
					reply.values[i] = string(text)
				}
			}
			got := fmt.Sprint(reply.values)
			if n, ok := reply.Int(); ok {
				got = fmt.Sprint(n)
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
			_, err := r.Run(t.Context(), NewScript(inFrame(text)), Keys{"k"})
			if !errors.Is(err, transport.ErrRefused) || !strings.Contains(err.Error(), "WRONGTYPE") || MaybeDone(err) {
				t.Errorf("%s: %v", text, err)
			}
		}
	})
}

// Each value of a Reply is read by its type, whichever client it came from.
func TestReply(t *testing.T) {
	t.Parallel()
	r := Reply{values: []any{int64(1), "2", []byte("three"), nil, "text"}}
	for i, want := range []struct {
		number           int64
		text             string
		isNumber, isText bool
	}{
		{1, "", true, false}, {2, "2", true, true}, {0, "three", false, true}, {}, {0, "text", false, true}, {},
	} {
		n, isNumber := r.IntAt(i)
		text, isText := r.TextAt(i)
		bytes, also := r.BytesAt(i)
		if n != want.number || isNumber != want.isNumber || text != want.text || string(bytes) != text || isText != want.isText || also != isText {
			t.Errorf("value %d: %d, %v, %q, %v", i, n, isNumber, text, isText)
		}
	}
	if _, ok := r.Int(); ok || r.Len() != 5 {
		t.Errorf("%v is a number, or has %d values", r, r.Len())
	}
	r = Reply{number: int64(3)}
	if n, ok := r.Int(); n != 3 || !ok || r.Len() != 0 {
		t.Errorf("%d, %v", n, ok)
	}
}

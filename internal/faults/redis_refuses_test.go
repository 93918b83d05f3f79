package faults

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"
)

// Redis forgets the scripts.
func TestScriptFlush(t *testing.T) {
	s := stage(t, "SCRIPT FLUSH, ten times", "not noticed", setting{logins: true})
	s.run(func(ctx context.Context) {
		s.redis.Do(t, "CONFIG", "RESETSTAT")
		for range 10 {
			s.redis.Do(t, "SCRIPT", "FLUSH")
			pause(ctx, 30*time.Millisecond)
		}
		happened(t, "Redis has said NOSCRIPT", info(t, s.redis, "errorstat_NOSCRIPT:count="), 10)
	})
	s.allAnswered()
}

// Another program's script keeps Redis busy, so that it answers BUSY to all others.
func TestBusyScript(t *testing.T) {
	s := stage(t, "Redis busy with a script for 1.5 s", "P8: 503, nothing lost, back by itself",
		setting{redis: []string{"--busy-reply-threshold", "100"}, logins: true, apart: true})
	s.run(func(ctx context.Context) {
		script, err := redis.DialURL(s.redis.URL)
		if err != nil {
			t.Fatal(err)
		}
		defer script.Close()
		if err := script.Send("EVAL", "while true do end", 0); err != nil {
			t.Fatal(err)
		}
		if err := script.Flush(); err != nil {
			t.Fatal(err)
		}
		g := s.guestWith("")
		eventually(t, 5*time.Second, "Redis is busy", func() bool {
			return g.post(s.demos[0], "/reset").status == http.StatusServiceUnavailable
		})
		pause(ctx, 1500*time.Millisecond)
		s.redis.Do(t, "SCRIPT", "KILL")
		if _, err := script.Receive(); err == nil {
			t.Error("the script ended by itself")
		}
		s.mustHaveLogged("BUSY")
	})
}

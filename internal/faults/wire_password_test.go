package faults

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/store"
)

const password = "correct-horse-battery-staple"

// The password of one process is changed, and its connections are killed; then the
// password is changed back.
func TestWireWrongPassword(t *testing.T) {
	t.Parallel()
	s := stage(t, "the password is changed for 2 s, connections killed", "P8, P11: 503 at once, back by itself, no secret told", setting{apart: true, demos: 1, logins: true})
	s.redis.Do(t, "ACL", "SETUSER", "app", "on", ">"+password, "~*", "&*", "+@all")
	d := s.add("redis://app:" + password + "@" + s.redis.Addr)
	g := s.guest(d)
	s.run(func(ctx context.Context) {
		s.redis.Do(t, "ACL", "SETUSER", "app", "resetpass", ">another")
		killed := s.redis.Do(t, "CLIENT", "KILL", "USER", "app").(int64)
		if got := g.post(d, "/incr"); got.status != http.StatusServiceUnavailable || got.took > time.Second {
			t.Errorf("with a wrong password, a write was answered with %d after %v", got.status, got.took)
		} else if strings.Contains(got.text, password) {
			t.Error("the answer contains the password")
		}
		pause(ctx, 2*time.Second)
		s.redis.Do(t, "ACL", "SETUSER", "app", "resetpass", ">"+password)
		s.seen = fmt.Sprintf("%d connections killed", killed)
		if killed == 0 {
			t.Error("no connection was killed")
		}
		g.must("with the password again", g.post(d, "/incr"), http.StatusOK, "1")
	})
	if !strings.Contains(d.Log(), "WRONGPASS") {
		t.Error("the log does not say what is wrong")
	}
	if strings.Contains(d.Log(), password) {
		t.Error("the log contains the password")
	}
}

// The same for requirepass, the one password of all clients, with a store in the test's
// own process, so that it sees the error.
func TestWireRequirepass(t *testing.T) {
	t.Parallel()
	r := redistest.Real(t)
	st, err := store.Open("redis://:"+password+"@"+r.Addr, store.Options{Lease: lease})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { st.Close() })
	row := noted(t, "requirepass is set while Latchkey has another password", "P8, P11: a clear error, no secret in it")
	r.Do(t, "CONFIG", "SET", "requirepass", password) // the test's own connection stays valid
	admin := func(args ...any) { r.Do(t, "CONFIG", args...) }
	if err := st.Create(t.Context(), "id", []byte(`{"a":1}`), store.Terms{}); err != nil {
		t.Fatal(err)
	}
	admin("SET", "requirepass", "another")
	r.Do(t, "CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
	_, err = take(t.Context(), st, "id")
	if !errors.Is(err, store.ErrUnavailable) || !strings.Contains(err.Error(), "WRONGPASS") || strings.Contains(err.Error(), password) {
		t.Fatalf("with a wrong password: %v", err)
	}
	row.seen = fmt.Sprintf("%.60q…", err.Error()[max(0, strings.Index(err.Error(), "redis is")):])
	admin("SET", "requirepass", password)
	if record, err := take(t.Context(), st, "id"); err != nil || string(record.Data) != `{"a":1}` {
		t.Errorf("with the password again: %q, %v", record.Data, err)
	}
	admin("SET", "requirepass", "")
}

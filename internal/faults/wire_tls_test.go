package faults

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/faults/rig"
	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/store"
	"github.com/gomodule/redigo/redis"
)

// tlsPort returns the flags that make a Redis also speak TLS, and the address for that.
func tlsPort(t *testing.T, c certificate) (flags []string, addr string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr = l.Addr().String()
	l.Close()
	_, port, _ := net.SplitHostPort(addr)
	return []string{"--tls-port", port, "--tls-cert-file", c.cert, "--tls-key-file", c.key, "--tls-auth-clients", "no"}, addr
}

// present makes a Redis show another certificate on new connections.
func present(t *testing.T, r *redistest.Server, c certificate) {
	t.Helper()
	r.Do(t, "CONFIG", "SET", "tls-cert-file", c.cert, "tls-key-file", c.key)
}

// Redis shows an invalid certificate. Nothing is sent without TLS, and nothing secret before
// the server is authenticated.
func TestWireCertificateRefused(t *testing.T) {
	t.Parallel()
	a := newAuthority(t)
	good := a.issue("127.0.0.1", time.Now().Add(time.Hour), false)
	flags, addr := tlsPort(t, good)
	r := redistest.Real(t, flags...)
	wire := rig.NewWire(t, addr)
	wire.Add(t, rig.Toxic{Type: "record", Stream: "upstream"})
	row := noted(t, "Redis shows a certificate that is self-signed, expired, of another host, of an unknown authority", "P8, P11: a clear error; no plain text, no secret")
	trusting := &redis.Pool{MaxIdle: 2, DialContext: func(ctx context.Context) (redis.Conn, error) {
		return redis.DialContext(ctx, "tcp", wire.Addr, redis.DialUseTLS(true), redis.DialPassword(password), redis.DialUsername("app"),
			redis.DialTLSConfig(&tls.Config{RootCAs: a.pool(), ServerName: "127.0.0.1"}))
	}}
	t.Cleanup(func() { trusting.Close() })
	r.Do(t, "ACL", "SETUSER", "app", "on", ">"+password, "~*", "&*", "+@all")
	plain := store.New(poolOf(t, r.Addr, 1), store.Options{})
	if err := plain.Create(t.Context(), "id", []byte(`{"a":1}`), store.Terms{}); err != nil {
		t.Fatal(err)
	}
	for _, bad := range []struct {
		what string
		cert certificate
		says string
	}{
		{"self-signed", a.issue("127.0.0.1", time.Now().Add(time.Hour), true), "unknown authority"},
		{"expired", a.issue("127.0.0.1", time.Now().Add(-time.Minute), false), "expired"},
		{"of another host", a.issue("redis.example", time.Now().Add(time.Hour), false), "cannot validate certificate for 127.0.0.1"},
	} {
		present(t, r, bad.cert)
		_, err := take(t.Context(), store.New(trusting, store.Options{}), "id")
		refused(t, bad.what, err, bad.says)
	}

	// A store from Open trusts only the system's authorities.
	present(t, r, good)
	st, err := store.Open("rediss://app:"+password+"@"+wire.Addr, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { st.Close() })
	_, err = take(t.Context(), st, "id")
	refused(t, "of an unknown authority", err, "unknown authority")

	sent := wire.Recorded(t, "upstream")
	row.seen = fmt.Sprintf("four refused, %d bytes sent to them", len(sent))
	if len(sent) == 0 || sent[0] != 0x16 { // a TLS handshake
		t.Errorf("it begins with %.20q", sent)
	}
	for _, secret := range []string{password, "AUTH", "EVALSHA", "latchkey:"} {
		if bytes.Contains(sent, []byte(secret)) {
			t.Errorf("%q was sent in plain text", secret)
		}
	}
	if record, err := take(t.Context(), store.New(trusting, store.Options{}), "id"); err != nil || string(record.Data) != `{"a":1}` {
		t.Errorf("with a good certificate: %q, %v", record.Data, err)
	}
}

func refused(t *testing.T, what string, err error, says string) {
	t.Helper()
	if !errors.Is(err, store.ErrUnavailable) || !strings.Contains(err.Error(), says) {
		t.Errorf("%s: the error is %v, and should say %q", what, err, says)
	}
	if err != nil && strings.Contains(err.Error(), password) {
		t.Errorf("%s: the error contains the password: %v", what, err)
	}
}

// The certificate is replaced while demos work, by a valid one, and then by an expired one:
// as long as that is there, new connections fail and requests get a 503.
func TestWireCertificateReplaced(t *testing.T) {
	a := newAuthority(t)
	t.Setenv("SSL_CERT_FILE", a.Path) // for the demo, so this test is not parallel
	t.Setenv("SSL_CERT_DIR", t.TempDir())
	flags, addr := tlsPort(t, a.issue("127.0.0.1", time.Now().Add(time.Hour), false))
	s := stage(t, "the TLS certificate replaced by a good one, then for 1 s by an expired one", "P8: 503 at once, back by itself", setting{
		apart: true, redis: flags, demos: 1, logins: true})
	d := s.add("rediss://" + addr)
	g := s.guest(d)
	s.run(func(ctx context.Context) {
		present(t, s.redis, a.issue("127.0.0.1", time.Now().Add(time.Hour), false))
		killed := s.disconnect(addr)
		g.must("with a new certificate", g.post(d, "/incr"), http.StatusOK, "1")

		present(t, s.redis, a.issue("127.0.0.1", time.Now().Add(-time.Minute), false))
		killed += s.disconnect(addr)
		if got := g.post(d, "/incr"); got.status != http.StatusServiceUnavailable || got.took > time.Second {
			t.Errorf("with an expired certificate, a write was answered with %d after %v", got.status, got.took)
		}
		pause(ctx, time.Second)
		present(t, s.redis, a.issue("127.0.0.1", time.Now().Add(time.Hour), false))
		g.must("with a good certificate again", g.post(d, "/incr"), http.StatusOK, "2")
		s.seen = fmt.Sprintf("%d connections killed", killed)
	})
	if !strings.Contains(d.Log(), "expired") {
		t.Error("the log does not say what is wrong")
	}
}

// disconnect ends all connections to an address of Redis.
func (s *scene) disconnect(laddr string) int64 {
	s.Helper()
	n := s.redis.Do(s.T, "CLIENT", "KILL", "LADDR", laddr).(int64)
	if n == 0 {
		s.Error("no connection was killed")
	}
	return n
}

package store

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/records"
	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/locker/transport"
	"github.com/gomodule/redigo/redis"
)

// An option that contradicts the URL, or would be ignored, is refused, and the error names it.
func TestOpenRefusesContradictions(t *testing.T) {
	t.Parallel()
	ask := func(context.Context) (string, string, error) { return "app", "s3cret", nil }
	for _, tt := range []struct {
		url     string
		options Options
		want    []string
	}{
		{"rediss://h", Options{TLS: &tls.Config{}}, nil},
		{"valkeys://h", Options{TLS: &tls.Config{}, Credentials: ask}, nil},
		{"redis://h", Options{Credentials: ask}, nil},
		{"unix:///s", Options{Credentials: ask}, nil},
		{"redis://h", Options{TLS: &tls.Config{}}, []string{"Options.TLS", "rediss://"}},
		{"valkey://h", Options{TLS: &tls.Config{}}, []string{"Options.TLS", "valkeys://"}},
		{"unix:///s", Options{TLS: &tls.Config{}}, []string{"Options.TLS"}},
		{"redis://:pa55@h", Options{Credentials: ask}, []string{"Options.Credentials", "URL"}},
		{"redis://app@h", Options{Credentials: ask}, []string{"Options.Credentials", "URL"}},
		{"redis://app:pa55@h", Options{Credentials: ask}, []string{"Options.Credentials", "URL"}},
	} {
		st, err := Open(tt.url, tt.options)
		wantMessage(t, err, tt.want)
		if err == nil {
			st.Close()
		} else if strings.Contains(err.Error(), "pa55") || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%q repeats a password", err)
		}
	}
	for name, o := range map[string]Options{"TLS": {TLS: &tls.Config{}}, "Credentials": {Credentials: ask}} {
		wantMessage(t, New(&redis.Pool{}, o).engine.Err(), []string{"Options." + name, "Open"})
		wantMessage(t, NewOn(transport.NewRedigo(&redis.Pool{}, time.Second), o).engine.Err(), []string{"Options." + name, "Open"})
	}
}

// Credentials is called at each dial. So a password that has changed in Redis causes no outage: open connections
// go on, and new ones log in with the new password.
func TestCredentialsThatRotate(t *testing.T) {
	t.Parallel()
	s := redistest.Real(t)
	var password atomic.Value
	rotate := func(to string) {
		s.Do(t, "ACL", "SETUSER", "app", "reset", "on", ">"+to, "~*", "&*", "+@all")
		password.Store(to)
	}
	rotate("first")
	var asked atomic.Int32
	o := patient
	o.Credentials = func(ctx context.Context) (string, string, error) {
		if _, ok := ctx.Deadline(); !ok {
			t.Error("the dial has no deadline")
		}
		asked.Add(1)
		return "app", password.Load().(string), nil
	}
	st := opened(t, s.URL, o)
	create(t, st, "1")
	save(t, st, "2")
	if n := asked.Load(); n != 1 {
		t.Errorf("asked %d times for one connection", n)
	}
	rotate("second")
	s.Do(t, "CLIENT", "KILL", "USER", "app")
	redistest.Eventually(t, "the session can be read", func() bool {
		_, err := st.engine.Load(t.Context(), theID, records.Terms{})
		return err == nil
	})
	if n := asked.Load(); n < 2 {
		t.Errorf("asked %d times in all", n)
	}
}

// If there are no credentials, the error says so. It never repeats a password.
func TestCredentialsThatFail(t *testing.T) {
	t.Parallel()
	s := redistest.Real(t)
	s.Do(t, "ACL", "SETUSER", "app", "on", ">pw", "~*", "+@all")
	errVault := errors.New("the vault is sealed")
	for name, tt := range map[string]struct {
		user, password string
		err            error
		want           []string
	}{
		"no answer":      {"", "", errVault, []string{"Options.Credentials", "the vault is sealed"}},
		"no password":    {"app", "", nil, []string{"Options.Credentials", "no password"}},
		"wrong password": {"app", "s3cret", nil, []string{"WRONGPASS"}},
	} {
		o := patient
		o.Credentials = func(context.Context) (string, string, error) { return tt.user, tt.password, tt.err }
		err := opened(t, s.URL, o).Ping(t.Context())
		wantError(t, name, err, ErrUnavailable)
		wantMessage(t, err, tt.want)
		if err != nil && strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%s: %q repeats the password", name, err)
		}
	}
}

// The program chooses a private certificate authority, and the client's own certificate.
func TestOpenWithACertificateAuthority(t *testing.T) {
	t.Parallel()
	s := redistest.Real(t)
	server, authority := certified(t, s.Addr)
	o := patient
	o.TLS = &tls.Config{RootCAs: authority, MinVersion: tls.VersionTLS12}
	st := opened(t, "rediss://"+server, o)
	o.TLS.RootCAs = x509.NewCertPool() // the options were copied, so the program may change them
	must(t, st.Ping(t.Context()))
	create(t, st, "1")
	save(t, st, "2")
	wantData(t, st, "2")

	err := opened(t, "rediss://"+server, o).Ping(t.Context())
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); !ok || !errors.Is(err, ErrUnavailable) {
		t.Errorf("Ping by a pool of other authorities: %v", err)
	}
	o.TLS = &tls.Config{RootCAs: authority, ServerName: "elsewhere.example"}
	err = opened(t, "rediss://"+server, o).Ping(t.Context())
	if _, ok := errors.AsType[x509.HostnameError](err); !ok {
		t.Errorf("Ping of another name: %v", err)
	}
}

// certified serves the server at addr over TLS. It returns the address, and the authority to trust.
func certified(t *testing.T, addr string) (server string, authority *x509.CertPool) {
	t.Helper()
	lender := httptest.NewTLSServer(nil) // has a certificate for 127.0.0.1
	defer lender.Close()
	authority = x509.NewCertPool()
	authority.AddCert(lender.Certificate())
	listener, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: lender.TLS.Certificates})
	must(t, err)
	var all sync.WaitGroup
	all.Go(func() {
		for {
			near, err := listener.Accept()
			if err != nil {
				return
			}
			far, err := net.Dial("tcp", addr)
			if err != nil {
				near.Close()
				continue
			}
			for _, way := range [][2]net.Conn{{near, far}, {far, near}} {
				all.Go(func() {
					_, _ = io.Copy(way[0], way[1])
					way[0].Close()
				})
			}
		}
	})
	t.Cleanup(func() {
		listener.Close()
		all.Wait()
	})
	return listener.Addr().String(), authority
}

package faults

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// An authority signs certificates.
type authority struct {
	*testing.T
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	Path string // of its own certificate
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{T: t}
	a.cert = &x509.Certificate{IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign, NotAfter: time.Now().Add(time.Hour)}
	a.Path, _, a.key = a.sign(a.cert)
	return a
}

// sign completes a certificate, and returns the paths of it and of its key. The first one signs itself.
func (a *authority) sign(c *x509.Certificate) (cert, private string, key *ecdsa.PrivateKey) {
	a.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.Fatal(err)
	}
	signer := a.key
	if signer == nil {
		signer = key
	}
	c.Subject = pkix.Name{CommonName: "fault suite"}
	c.SerialNumber, c.NotBefore = big.NewInt(time.Now().UnixNano()), time.Now().Add(-time.Hour)
	der, err := x509.CreateCertificate(rand.Reader, c, a.cert, &key.PublicKey, signer)
	if err != nil {
		a.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		a.Fatal(err)
	}
	dir := a.TempDir()
	store := func(name, kind string, der []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
			a.Fatal(err)
		}
		return path
	}
	return store("cert.pem", "CERTIFICATE", der), store("key.pem", "PRIVATE KEY", secret), key
}

// issue makes a certificate for this machine, valid until a moment from now.
func (a *authority) issue(valid time.Duration) (cert, key string) {
	a.Helper()
	cert, key, _ = a.sign(&x509.Certificate{NotAfter: time.Now().Add(valid), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}})
	return cert, key
}

// The certificate is replaced while demos work, by a valid one, and then by an expired one:
// as long as that is there, new connections fail and requests get a 503.
func TestWireCertificateReplaced(t *testing.T) {
	a := newAuthority(t)
	t.Setenv("SSL_CERT_FILE", a.Path) // for the demo, so this test is not parallel
	t.Setenv("SSL_CERT_DIR", t.TempDir())
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	l.Close()
	_, port, _ := net.SplitHostPort(addr)
	cert, key := a.issue(time.Hour)
	s := stage(t, "the TLS certificate replaced by a good one, then for 1 s by an expired one", "P8: 503 at once, back by itself", setting{
		apart: true, demos: 1, logins: true,
		redis: []string{"--tls-port", port, "--tls-cert-file", cert, "--tls-key-file", key, "--tls-auth-clients", "no"}})
	d := s.add("rediss://" + addr)
	g := s.guest(d)
	present := func(valid time.Duration) { // on new connections
		cert, key := a.issue(valid)
		s.redis.Do(t, "CONFIG", "SET", "tls-cert-file", cert, "tls-key-file", key)
	}
	disconnect := func() {
		if s.redis.Do(t, "CLIENT", "KILL", "LADDR", addr) == int64(0) {
			t.Error("no connection was killed")
		}
	}
	s.run(func(ctx context.Context) {
		present(time.Hour)
		disconnect()
		g.must("with a new certificate", g.post(d, "/incr"), http.StatusOK, "1")

		present(-time.Minute)
		disconnect()
		begun := time.Now()
		g.must("with an expired certificate", g.post(d, "/incr"), http.StatusServiceUnavailable, "")
		within(t, "the answer with an expired certificate", begun, time.Second)
		pause(ctx, time.Second)
		present(time.Hour)
		g.must("with a good certificate again", g.post(d, "/incr"), http.StatusOK, "2")
	})
	if !strings.Contains(d.Log(), "expired") {
		t.Error("the log does not say what is wrong")
	}
}

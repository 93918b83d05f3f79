package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/redistest"
)

// certificate returns the files of a certificate for 127.0.0.1, which is its own authority, and of its key.
func certificate(t *testing.T) (cert, key string, pair tls.Certificate) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	about := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, about, about, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	certText := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	keyText := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret})
	if pair, err = tls.X509KeyPair(certText, keyText); err != nil {
		t.Fatal(err)
	}
	return file(t, string(certText)), file(t, string(keyText)), pair
}

// behindTLS serves a Redis to clients that have this certificate.
func behindTLS(t *testing.T, s *redistest.Server, of tls.Certificate) (addr string) {
	t.Helper()
	trusted := x509.NewCertPool()
	trusted.AddCert(of.Leaf)
	listener, err := tls.Listen("tcp", "127.0.0.1:0",
		&tls.Config{Certificates: []tls.Certificate{of}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: trusted})
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	all.Go(func() {
		for near, err := listener.Accept(); err == nil; near, err = listener.Accept() {
			all.Go(func() {
				defer near.Close()
				if near.(*tls.Conn).Handshake() != nil {
					_, _ = io.Copy(io.Discard, near.(*tls.Conn).NetConn()) // a reset could overtake the reason
					return
				}
				far, err := net.Dial("tcp", s.Addr)
				if err != nil {
					return
				}
				defer far.Close()
				all.Go(func() {
					_, _ = io.Copy(near, far)
					near.Close()
				})
				_, _ = io.Copy(far, near)
			})
		}
	})
	t.Cleanup(func() {
		listener.Close()
		all.Wait()
	})
	return listener.Addr().String()
}

// A Redis may want a certificate of its clients, and have one of its own authority.
func TestClientCertificate(t *testing.T) {
	t.Parallel()
	cert, key, pair := certificate(t)
	strange, strangeKey, _ := certificate(t)
	at := behindTLS(t, redistest.Real(t), pair)
	url := "rediss://" + at
	const long = "--timeout=20s" // a busy machine needs more than the default for TLS
	must(t, url, "locks", long, "--cacert", cert, "--cert", cert, "--key", key)
	none := call(t, url, "list", long, "--user", "ann", "--cacert="+cert, "--cert="+cert, "--key="+key)
	contains(t, none.stdout, "the user has no session")
	for want, args := range map[string][]string{
		"tls: certificate required: name it by --cert and --key\n": {"--cacert", cert},
		"remote error: tls: ":                {"--cacert", cert, "--cert", strange, "--key", strangeKey},
		": name its authority by --cacert\n": {"--cacert", strange, "--cert", cert, "--key", key},
	} {
		fails(t, call(t, url, append([]string{"locks", long}, args...)...), exitError, "redis at "+at+": ", want)
	}
	locked := file(t, string(pem.EncodeToMemory(&pem.Block{Type: "ENCRYPTED PRIVATE KEY", Bytes: []byte("sealed")})))
	for want, args := range map[string][]string{
		"--cert and --key belong together":         {"--cert", cert},
		"--cert and --key belong together: ":       {"--key", key, "--cacert", cert},
		"private key does not match public key":    {"--cert", cert, "--key", strangeKey},
		"--key: /nowhere: no such file":            {"--cert", cert, "--key", "/nowhere"},
		"--cacert: " + key + " has no certificate": {"--cacert", key},
		"and --key " + cert + ": tls: ":            {"--cert", cert, "--key", cert},
		"; a key with a passphrase cannot be read": {"--cert", cert, "--key", locked},
	} {
		r := call(t, url, append([]string{"locks"}, args...)...)
		fails(t, r, exitUsage, want)
		if strings.Contains(r.stderr, "PRIVATE KEY-") {
			t.Errorf("it shows the key: %s", r.stderr)
		}
	}
	for _, plain := range []string{"redis://" + at, "unix:///nowhere"} {
		fails(t, call(t, plain, "locks", "--cert", cert, "--key", key), exitUsage, "are for TLS: write rediss or valkeys as the URL's scheme")
	}
}

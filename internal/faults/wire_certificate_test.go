package faults

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
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
	a := &authority{T: t, key: ecdsaKey(t)}
	a.cert = a.sign(&x509.Certificate{IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
		NotAfter: time.Now().Add(time.Hour)}, nil, a.key)
	a.Path = a.store("ca.pem", "CERTIFICATE", a.cert.Raw)
	return a
}

// pool returns the certificates of a client that trusts the authority.
func (a *authority) pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(a.cert)
	return pool
}

// A certificate is the paths of one and of its key.
type certificate struct{ cert, key string }

// issue makes a certificate for a host, valid until a moment, signed by the authority or
// by itself.
func (a *authority) issue(host string, until time.Time, selfSigned bool) certificate {
	a.Helper()
	key := ecdsaKey(a.T)
	c := &x509.Certificate{NotAfter: until, KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}
	if ip := net.ParseIP(host); ip != nil {
		c.IPAddresses = []net.IP{ip}
	} else {
		c.DNSNames = []string{host}
	}
	parent := a.cert
	if selfSigned {
		parent = nil
	}
	signed := a.sign(c, parent, key)
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		a.Fatal(err)
	}
	return certificate{a.store("cert.pem", "CERTIFICATE", signed.Raw), a.store("key.pem", "PRIVATE KEY", der)}
}

// sign completes a certificate for a key. Without a parent it is self-signed.
func (a *authority) sign(c, parent *x509.Certificate, key *ecdsa.PrivateKey) *x509.Certificate {
	a.Helper()
	c.SerialNumber, c.NotBefore = big.NewInt(time.Now().UnixNano()), time.Now().Add(-time.Hour)
	c.Subject = pkix.Name{CommonName: "fault suite"}
	signer := a.key
	if parent == nil {
		parent, signer = c, key
	}
	der, err := x509.CreateCertificate(rand.Reader, c, parent, &key.PublicKey, signer)
	if err != nil {
		a.Fatal(err)
	}
	signed, err := x509.ParseCertificate(der)
	if err != nil {
		a.Fatal(err)
	}
	return signed
}

func (a *authority) store(name, kind string, der []byte) string {
	a.Helper()
	path := filepath.Join(a.TempDir(), name)
	if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
		a.Fatal(err)
	}
	return path
}

func ecdsaKey(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

package main

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"strings"
)

// readTLS reads the files of certificates. Without --cacert, the authorities are those of the system.
func (o *options) readTLS() error {
	switch {
	case o.cert == "" && o.key == "" && o.caCert == "":
		return nil
	case o.redis.TLSConfig == nil:
		return usage("--cert, --key and --cacert are for TLS: write rediss or valkeys as the URL's scheme")
	case (o.cert == "") != (o.key == ""):
		return usage("--cert and --key belong together: the certificate of this program, and its private key")
	}
	if o.caCert != "" {
		text, err := readFile("--cacert", o.caCert)
		if err != nil {
			return err
		}
		o.redis.TLSConfig.RootCAs = x509.NewCertPool()
		if !o.redis.TLSConfig.RootCAs.AppendCertsFromPEM([]byte(text)) {
			return usage("--cacert: %s has no certificate in PEM", o.caCert)
		}
	}
	if o.cert == "" {
		return nil
	}
	cert, err := readFile("--cert", o.cert)
	if err != nil {
		return err
	}
	key, err := readFile("--key", o.key)
	if err != nil {
		return err
	}
	pair, err := tls.X509KeyPair([]byte(cert), []byte(key))
	if err != nil && strings.Contains(key, "ENCRYPTED") { // in the PEM type, or in its Proc-Type header
		err = fmt.Errorf("%w; a key with a passphrase cannot be read", err)
	}
	if err != nil {
		return usage("--cert %s and --key %s: %w", o.cert, o.key, err)
	}
	o.redis.TLSConfig.Certificates = []tls.Certificate{pair}
	return nil
}

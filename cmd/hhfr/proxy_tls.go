package main

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/pflag"
)

// proxyTLS are the flags of TLS with the upstream and with clients.
type proxyTLS struct {
	cacert, cert, key, listenCert, listenKey string
	insecure                                 bool
}

func (o *proxyTLS) flags(f *pflag.FlagSet) {
	f.StringVar(&o.cacert, "cacert", "", "PEM file of certificates to trust for an https upstream")
	f.StringVar(&o.cert, "cert", "", "PEM file with the certificate to show to an https upstream")
	f.StringVar(&o.key, "key", "", "PEM file with the key of --cert")
	f.BoolVar(&o.insecure, "insecure-skip-verify", false, "take any certificate of an https upstream")
	f.StringVar(&o.listenCert, "listen-cert", "", "PEM file with the certificate to show to clients: --listen takes https")
	f.StringVar(&o.listenKey, "listen-key", "", "PEM file with the key of --listen-cert")
}

// proxySecurity is what the flags ask for. listen is nil if clients speak HTTP without TLS.
type proxySecurity struct {
	upstream, listen *tls.Config
	keys             *os.File // of SSLKEYLOGFILE, nil: none
}

func (o *proxyTLS) open() (*proxySecurity, error) {
	s := &proxySecurity{upstream: &tls.Config{InsecureSkipVerify: o.insecure}}
	if o.cacert != "" {
		pem, err := os.ReadFile(o.cacert)
		if err != nil {
			return nil, fmt.Errorf("--cacert: %w", err)
		}
		s.upstream.RootCAs = x509.NewCertPool()
		if !s.upstream.RootCAs.AppendCertsFromPEM(pem) {
			return nil, usage(fmt.Errorf("--cacert %s has no certificate in PEM", o.cacert), "")
		}
	}
	var err error
	if s.upstream.Certificates, err = keyPair("--cert", o.cert, "--key", o.key); err != nil {
		return nil, err
	}
	own, err := keyPair("--listen-cert", o.listenCert, "--listen-key", o.listenKey)
	if err != nil {
		return nil, err
	}
	if own != nil {
		s.listen = &tls.Config{Certificates: own, NextProtos: []string{"http/1.1"}}
	}
	return s, s.logKeys()
}

// keyPair reads a certificate and its key; nil if neither is given.
func keyPair(certFlag, cert, keyFlag, key string) ([]tls.Certificate, error) {
	switch {
	case cert == "" && key == "":
		return nil, nil
	case cert == "" || key == "":
		return nil, usage(errors.New(certFlag+" and "+keyFlag+" go together"), "")
	}
	c, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		return nil, fmt.Errorf("%s, %s: %w", certFlag, keyFlag, err)
	}
	return []tls.Certificate{c}, nil
}

// logKeys writes the keys of all TLS to the file that SSLKEYLOGFILE names, if any.
func (s *proxySecurity) logKeys() (err error) {
	name := os.Getenv("SSLKEYLOGFILE")
	if name == "" {
		return nil
	}
	if s.keys, err = os.OpenFile(name, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600); err != nil {
		return fmt.Errorf("SSLKEYLOGFILE: %w", err)
	}
	s.upstream.KeyLogWriter = s.keys
	if s.listen != nil {
		s.listen.KeyLogWriter = s.keys
	}
	return nil
}

func (s *proxySecurity) close() {
	if s.keys != nil {
		_ = s.keys.Close()
	}
}

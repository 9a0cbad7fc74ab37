package main

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"

	"github.com/spf13/pflag"

	"github.com/hhfr/hhfr/internal/responder"
)

// serverTLS are the TLS flags for clients' connections, and for who may have a session.
type serverTLS struct {
	cert, key, clientCA, negotiate string
}

// certificateFlags are those of the server's own certificate.
func (o *serverTLS) certificateFlags(f *pflag.FlagSet) {
	f.StringVar(&o.cert, "cert", "", "PEM file with the certificate to show to clients, and those above it: "+
		"--listen then takes TLS only")
	f.StringVar(&o.key, "key", "", "PEM file with the key of --cert")
}

func (o *serverTLS) flags(f *pflag.FlagSet) {
	o.certificateFlags(f)
	f.StringVar(&o.clientCA, "client-ca", "",
		"PEM file of certificates to trust: clients must show one that these signed; with --negotiate certificate, "+
			"clients without one may continue in plain SOAP")
	f.StringVar(&o.negotiate, "negotiate", "everybody",
		"who may have a session: everybody, nobody, certificate, or bearer:FILE with one token per line; others "+
			"get plain SOAP")
}

// scheme is the scheme of URLs at --listen.
func (o *serverTLS) scheme() string {
	if o.cert != "" {
		return "https"
	}
	return "http"
}

// config reads the files of TLS; nil without a certificate. keys, if any, receives the keys of
// connections.
func (o *serverTLS) config(keys *os.File) (*tls.Config, error) {
	own, err := keyPair("--cert", o.cert, "--key", o.key)
	if err != nil {
		return nil, err
	}
	if own == nil {
		if o.clientCA != "" {
			return nil, usage(errors.New("--client-ca is for TLS: --cert and --key are missing"), "")
		}
		return nil, nil
	}
	c := &tls.Config{Certificates: own}
	(&secured{keys: keys}).log(c)
	if o.clientCA == "" {
		return c, nil
	}
	if c.ClientCAs, err = certificates("--client-ca", o.clientCA); err != nil {
		return nil, err
	}
	c.ClientAuth = tls.RequireAndVerifyClientCert
	if o.negotiate == "certificate" {
		c.ClientAuth = tls.VerifyClientCertIfGiven
	}
	return c, nil
}

// sessions decides who may have a session; nil: everybody.
func (o *serverTLS) sessions() (func(*http.Request) error, error) {
	if o.negotiate == "nobody" {
		return func(*http.Request) error { return errors.New("nobody may have a session here") }, nil
	}
	return admission("--negotiate", o.negotiate, o.clientCA, "nobody")
}

// admission decides by the value of a flag who is admitted; nil: everybody. The caller knows one
// more value.
func admission(flag, who, clientCA, more string) (func(*http.Request) error, error) {
	file, bearer := strings.CutPrefix(who, "bearer:")
	switch {
	case who == "everybody":
		return nil, nil
	case who == "certificate" && clientCA == "":
		return nil, usage(errors.New(flag+" certificate needs --client-ca"),
			"name the file of those who sign clients' certificates")
	case who == "certificate":
		return responder.AdmitCertificate, nil
	case !bearer || file == "":
		return nil, usage(fmt.Errorf("%s is everybody, %s, certificate or bearer:FILE, not %q", flag, more, who), "")
	}
	tokens, err := tokensIn(flag, file)
	if err != nil {
		return nil, err
	}
	return responder.AdmitBearer(tokens), nil
}

// tokensIn reads the bearer tokens in a file.
func tokensIn(flag, file string) ([]string, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", flag, err)
	}
	tokens := strings.Fields(string(text))
	if len(tokens) == 0 {
		return nil, usage(fmt.Errorf("%s: %s has no token", flag, file), "one a line")
	}
	return tokens, nil
}

// certificates reads a PEM file of certificates.
func certificates(flag, name string) (*x509.CertPool, error) {
	pem, err := os.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", flag, err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return nil, usage(fmt.Errorf("%s %s has no certificate in PEM", flag, name), "")
	}
	return pool, nil
}

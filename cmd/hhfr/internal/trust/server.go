package trust

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"

	"github.com/spf13/pflag"

	"github.com/hhfr/hhfr/cmd/hhfr/internal/exit"
	"github.com/hhfr/hhfr/internal/responder"
)

// ServerTLS are the TLS flags for clients' connections, and for who may have a session.
type ServerTLS struct {
	Cert, key, ClientCA, Negotiate string
}

// CertificateFlags are those of certificates, the server's own and those of clients.
func (o *ServerTLS) CertificateFlags(f *pflag.FlagSet) {
	f.StringVar(&o.Cert, "cert", "", "PEM file with the certificate to show to clients, and those above it: "+
		"--listen then takes TLS only")
	f.StringVar(&o.key, "key", "", "PEM file with the key of --cert")
	f.StringVar(&o.ClientCA, "client-ca", "",
		"PEM file of certificates to trust: clients must show one that these signed")
}

// Flags declares them, and who may have a session.
func (o *ServerTLS) Flags(f *pflag.FlagSet) {
	o.CertificateFlags(f)
	f.StringVar(&o.Negotiate, "negotiate", "everybody",
		"who may have a session: everybody, nobody, certificate, or bearer:FILE with one token per line; others "+
			"get plain SOAP, and with certificate need not show any")
}

// Scheme is the scheme of URLs at --listen.
func (o *ServerTLS) Scheme() string {
	if o.Cert != "" {
		return "https"
	}
	return "http"
}

// config reads the files of TLS; nil without a certificate. keys, if any, receives the keys of
// connections.
func (o *ServerTLS) config(keys *KeyWriter) (*tls.Config, error) {
	own, err := KeyPair("--cert", o.Cert, "--key", o.key)
	if err != nil {
		return nil, err
	}
	if own == nil {
		if o.ClientCA != "" {
			return nil, exit.Usagef("", "--client-ca is for TLS: --cert and --key are missing")
		}
		return nil, nil
	}
	c := &tls.Config{Certificates: own}
	keys.Of(c)
	if o.ClientCA == "" {
		return c, nil
	}
	if c.ClientCAs, err = Certificates("--client-ca", o.ClientCA); err != nil {
		return nil, err
	}
	c.ClientAuth = tls.RequireAndVerifyClientCert
	if o.Negotiate == "certificate" {
		c.ClientAuth = tls.VerifyClientCertIfGiven
	}
	return c, nil
}

// sessions decides who may have a session; nil: everybody.
func (o *ServerTLS) sessions() (func(*http.Request) error, error) {
	if o.Negotiate == "nobody" {
		return func(*http.Request) error { return errors.New("nobody may have a session here") }, nil
	}
	return admission("--negotiate", o.Negotiate, o.ClientCA, "nobody")
}

// admission decides by the value of a flag who is admitted; nil: everybody. The caller knows one
// more value.
func admission(flag, who, clientCA, more string) (func(*http.Request) error, error) {
	file, bearer := strings.CutPrefix(who, "bearer:")
	switch {
	case who == "everybody":
		return nil, nil
	case who == "certificate" && clientCA == "":
		return nil, exit.Usagef("name the file of those who sign clients' certificates",
			"%s certificate needs --client-ca", flag)
	case who == "certificate":
		return responder.AdmitCertificate, nil
	case !bearer || file == "":
		return nil, exit.Usagef("", "%s is everybody, %s, certificate or bearer:FILE, not %q", flag, more, who)
	}
	tokens, err := TokensIn(flag, file)
	if err != nil {
		return nil, err
	}
	return responder.AdmitBearer(tokens), nil
}

// TokensIn reads the bearer tokens in a file.
func TokensIn(flag, file string) ([]string, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", flag, err)
	}
	tokens := strings.Fields(string(text))
	if len(tokens) == 0 {
		return nil, exit.Usagef("one a line", "%s: %s has no token", flag, file)
	}
	return tokens, nil
}

// Certificates reads a PEM file of certificates.
func Certificates(flag, name string) (*x509.CertPool, error) {
	pem, err := os.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", flag, err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return nil, exit.Usagef("", "%s %s has no certificate in PEM", flag, name)
	}
	return pool, nil
}

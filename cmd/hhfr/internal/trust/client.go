// Package trust reads certificates, keys and tokens: who a command is, and whom it trusts.
package trust

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"

	"github.com/spf13/pflag"

	"github.com/hhfr/hhfr/cmd/hhfr/internal/exit"
	"github.com/hhfr/hhfr/internal/pcapng"
	"github.com/hhfr/hhfr/internal/resolve"
	"github.com/hhfr/hhfr/internal/session"
	"github.com/hhfr/hhfr/pkg/negotiate"
)

// ClientTLS are the TLS flags for connections to servers.
type ClientTLS struct {
	Prefix            string // of the flags of our own certificate
	CACert, Cert, Key string
	insecure          bool
}

// Flags declares them.
func (o *ClientTLS) Flags(f *pflag.FlagSet) {
	f.StringVar(&o.CACert, "cacert", "", "PEM file of certificates to trust for an https URL")
	f.StringVar(&o.Cert, o.Prefix+"cert", "", "PEM file with the certificate to show to the server of an https URL")
	f.StringVar(&o.Key, o.Prefix+"key", "", "PEM file with the key of --"+o.Prefix+"cert")
	f.BoolVar(&o.insecure, "insecure-skip-verify", false, "accept any certificate of the server of an https URL")
}

// Secured is the result of the flags.
type Secured struct {
	Config *tls.Config
	Keys   *KeyWriter // nil: none
}

// Open reads the files. recorded: a recording is to have the keys of connections. The caller closes
// the result.
func (o *ClientTLS) Open(system resolve.System, recorded bool) (*Secured, error) {
	c, err := o.Config(system)
	if err != nil {
		return nil, err
	}
	keys, err := OpenKeyWriter(recorded)
	if err != nil {
		return nil, err
	}
	keys.Of(c)
	return &Secured{Config: c, Keys: keys}, nil
}

// Config reads the files.
func (o *ClientTLS) Config(system resolve.System) (*tls.Config, error) {
	c := &tls.Config{InsecureSkipVerify: o.insecure}
	var err error
	if c.RootCAs, err = TermuxRoots(system); err != nil {
		return nil, err
	}
	if o.CACert != "" {
		if c.RootCAs, err = Certificates("--cacert", o.CACert); err != nil {
			return nil, err
		}
	}
	c.Certificates, err = KeyPair("--"+o.Prefix+"cert", o.Cert, "--"+o.Prefix+"key", o.Key)
	return c, err
}

// Curl are the arguments with which curl trusts and shows the same, each with its value.
func (o *ClientTLS) Curl() (args [][2]string) {
	for _, one := range [][2]string{{"--cacert", o.CACert}, {"--cert", o.Cert}, {"--key", o.Key}} {
		if one[1] != "" {
			args = append(args, one)
		}
	}
	if o.insecure {
		args = append(args, [2]string{"--insecure"})
	}
	return args
}

// Files names the files that a configuration was read from.
func (o *ClientTLS) Files(c *tls.Config) (files []string) {
	if o.CACert != "" {
		files = append(files, "--cacert "+o.CACert)
	}
	if len(c.Certificates) > 0 {
		files = append(files, certificateFile("--"+o.Prefix+"cert", o.Cert, c.Certificates))
	}
	return files
}

// Close closes the file of the keys.
func (s *Secured) Close() { _ = s.Keys.Close() }

// Over returns a dial function that opens TLS inside the connections of another. Its error names a
// server that does not speak TLS.
func (s *Secured) Over(open pcapng.DialFunc) func(ctx context.Context, network, addr string) (*tls.Conn, error) {
	return func(ctx context.Context, network, addr string) (*tls.Conn, error) {
		c, err := open(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		config := s.Config.Clone()
		if config.ServerName, _, err = net.SplitHostPort(addr); err != nil {
			return nil, errors.Join(err, c.Close())
		}
		config.NextProtos = []string{"http/1.1"}
		if session.AsksByALPN(ctx) {
			config.NextProtos = []string{negotiate.Protocol, "http/1.1"}
		}
		secure := tls.Client(c, config)
		if err := secure.HandshakeContext(ctx); err != nil {
			_ = c.Close()
			return nil, err
		}
		return secure, nil
	}
}

// KeyPair reads a certificate and its key; nil if neither is given.
func KeyPair(certFlag, cert, keyFlag, key string) ([]tls.Certificate, error) {
	switch {
	case cert == "" && key == "":
		return nil, nil
	case cert == "" || key == "":
		return nil, exit.Usagef("", "%s and %s go together", certFlag, keyFlag)
	}
	c, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		return nil, fmt.Errorf("%s %s, %s %s: %w", certFlag, cert, keyFlag, key, err)
	}
	return []tls.Certificate{c}, nil
}

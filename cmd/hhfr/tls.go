package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"

	"github.com/spf13/pflag"

	"github.com/hhfr/hhfr/internal/pcapng"
	"github.com/hhfr/hhfr/internal/resolve"
	"github.com/hhfr/hhfr/internal/session"
	"github.com/hhfr/hhfr/pkg/negotiate"
)

// clientTLS are the TLS flags for connections to servers.
type clientTLS struct {
	prefix            string // of the flags of our own certificate
	cacert, cert, key string
	insecure          bool
}

// flags declares them; whom names the servers that are called with https, in the words of the
// command.
func (o *clientTLS) flags(f *pflag.FlagSet, whom string) {
	f.StringVar(&o.cacert, "cacert", "", "PEM file of certificates to trust for an https "+whom)
	f.StringVar(&o.cert, o.prefix+"cert", "", "PEM file with the certificate to show to an https "+whom)
	f.StringVar(&o.key, o.prefix+"key", "", "PEM file with the key of --"+o.prefix+"cert")
	f.BoolVar(&o.insecure, "insecure-skip-verify", false, "accept any certificate of an https "+whom)
}

// secured is the result of the flags.
type secured struct {
	config *tls.Config
	keys   *os.File // of SSLKEYLOGFILE, nil: none
}

// open reads the files. The caller closes the result.
func (o *clientTLS) open(system resolve.System) (*secured, error) {
	c, err := o.config(system)
	if err != nil {
		return nil, err
	}
	keys, err := keyLog()
	if err != nil {
		return nil, err
	}
	s := &secured{config: c, keys: keys}
	s.log(c)
	return s, nil
}

// config reads the files.
func (o *clientTLS) config(system resolve.System) (*tls.Config, error) {
	c := &tls.Config{InsecureSkipVerify: o.insecure}
	var err error
	if c.RootCAs, err = termuxRoots(system); err != nil {
		return nil, err
	}
	if o.cacert != "" {
		if c.RootCAs, err = certificates("--cacert", o.cacert); err != nil {
			return nil, err
		}
	}
	c.Certificates, err = keyPair("--"+o.prefix+"cert", o.cert, "--"+o.prefix+"key", o.key)
	return c, err
}

// files names the files that a configuration was read from.
func (o *clientTLS) files(c *tls.Config) (files []string) {
	if o.cacert != "" {
		files = append(files, "--cacert "+o.cacert)
	}
	if len(c.Certificates) > 0 {
		files = append(files, certificateFile("--"+o.prefix+"cert", o.cert, c.Certificates))
	}
	return files
}

// log makes a configuration write its keys to the file that SSLKEYLOGFILE names, if any.
func (s *secured) log(c *tls.Config) {
	if s.keys != nil {
		c.KeyLogWriter = s.keys
	}
}

func (s *secured) close() {
	if s.keys != nil {
		_ = s.keys.Close()
	}
}

// over returns a dial function that opens TLS inside the connections of another. Its error names a
// server that does not speak TLS.
func (s *secured) over(open pcapng.DialFunc) func(ctx context.Context, network, addr string) (*tls.Conn, error) {
	return func(ctx context.Context, network, addr string) (*tls.Conn, error) {
		c, err := open(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		config := s.config.Clone()
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

// keyLog opens the file that SSLKEYLOGFILE names; nil if it names none.
func keyLog() (*os.File, error) {
	name := os.Getenv("SSLKEYLOGFILE")
	if name == "" {
		return nil, nil
	}
	f, err := os.OpenFile(name, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("SSLKEYLOGFILE: %w", err)
	}
	return f, nil
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
		return nil, fmt.Errorf("%s %s, %s %s: %w", certFlag, cert, keyFlag, key, err)
	}
	return []tls.Certificate{c}, nil
}

// troubleHints are the remedies for trouble with certificates.
var troubleHints = map[session.Trouble]string{
	session.Untrusted: "--cacert FILE trusts those who signed it, --insecure-skip-verify anyone",
	session.OtherHost: "name a host of its certificate in the URL; --insecure-skip-verify takes any certificate",
	session.OutOfTime: "have the server show another certificate, or set the clock; --insecure-skip-verify takes any",
	session.Wanted:    "--cert FILE and --key FILE show one",
	session.Rejected:  "--cert and --key are to be of those whom the server trusts, and not expired",
}

// unreachableHint is the remedy for a server that cannot be reached, or is not trusted.
func unreachableHint(err error) string {
	if hint := troubleHints[session.TroubleOf(err)]; hint != "" {
		return hint
	}
	var unresolved *net.DNSError
	var wrong *session.SchemeError
	switch {
	case errors.As(err, &unresolved) && unresolved.IsNotFound:
		return "is the name right? --dns IP[:PORT] asks another DNS server"
	case errors.As(err, &unresolved):
		return "--dns IP[:PORT] names a DNS server to ask"
	case errors.As(err, &wrong):
		return "write " + wrong.Scheme + ":// in the URL, or name another port"
	}
	return "is the server running, and are host and port right?"
}

package session

import (
	"crypto/x509"
	"errors"
	"net"
	"strings"
)

// Trouble is what is wrong with a certificate when TLS failed because of it.
type Trouble uint8

// The kinds of trouble. The zero value means none.
const (
	// Untrusted: the server's certificate is signed by nobody who is trusted.
	Untrusted Trouble = iota + 1
	// OtherHost: the server's certificate is for other hosts than that of the URL.
	OtherHost
	// OutOfTime: the server's certificate has expired, or is not valid yet.
	OutOfTime
	// Wanted: the server wants a certificate of the client, which presented none.
	Wanted
	// Rejected: the server does not accept the client's certificate.
	Rejected
)

var troubles = map[Trouble]string{
	Untrusted: "the server's certificate is signed by no authority that is trusted here",
	OtherHost: "the server's certificate is for other hosts",
	OutOfTime: "the server's certificate has expired or is not valid yet",
	Wanted:    "the server wants a certificate of the client",
	Rejected:  "the server does not accept the client's certificate",
}

// String describes the trouble; it is empty for none.
func (t Trouble) String() string { return troubles[t] }

// TroubleOf reports which trouble with a certificate caused an error of TLS; 0: none.
func TroubleOf(err error) Trouble {
	var authority x509.UnknownAuthorityError
	var host x509.HostnameError
	var invalid x509.CertificateInvalidError
	var alert *net.OpError
	switch {
	case errors.As(err, &authority):
		return Untrusted
	case errors.As(err, &host):
		return OtherHost
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return OutOfTime
	case errors.As(err, &invalid):
		return Untrusted
	case errors.As(err, &alert) && alert.Op == "remote error": // crypto/tls has no type for alerts
		text := alert.Err.Error()
		switch {
		case strings.Contains(text, "certificate required"):
			return Wanted
		case strings.Contains(text, "certificate"):
			return Rejected
		}
	}
	return 0
}

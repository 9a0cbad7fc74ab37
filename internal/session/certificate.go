package session

import (
	"crypto/x509"
	"errors"
	"net"
	"strings"
)

// Trouble is what is wrong with a certificate where TLS failed for one.
type Trouble uint8

// The troubles there are. The zero value is none.
const (
	// Untrusted: nobody who is trusted signed the server's.
	Untrusted Trouble = iota + 1
	// OtherHost: the server's is for other hosts than that of the URL.
	OtherHost
	// OutOfTime: the server's has expired, or is not valid yet.
	OutOfTime
	// Wanted: the server wants one of the client, which showed none.
	Wanted
	// Rejected: the server does not accept that of the client.
	Rejected
)

var troubles = map[Trouble]string{
	Untrusted: "nobody who is trusted here signed the server's certificate",
	OtherHost: "the server's certificate is for other hosts",
	OutOfTime: "the server's certificate has expired or is not valid yet",
	Wanted:    "the server wants a certificate of the client",
	Rejected:  "the server does not accept the client's certificate",
}

// String says what is wrong; empty for none.
func (t Trouble) String() string { return troubles[t] }

// TroubleOf finds out whether an error of TLS is about a certificate; 0: it is not.
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

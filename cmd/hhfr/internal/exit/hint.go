package exit

import (
	"errors"
	"net"

	"github.com/hhfr/hhfr/internal/session"
	"github.com/hhfr/hhfr/internal/soapjms"
)

// troubleHints are the remedies for trouble with certificates.
var troubleHints = map[session.Trouble]string{
	session.Untrusted: "--cacert FILE trusts those who signed it, --insecure-skip-verify anyone",
	session.OtherHost: "name a host of its certificate in the URL; --insecure-skip-verify takes any certificate",
	session.OutOfTime: "have the server show another certificate, or set the clock; --insecure-skip-verify takes any",
	session.Wanted:    "--cert FILE and --key FILE show one",
	session.Rejected:  "--cert and --key are to be of those whom the server trusts, and not expired",
}

// UnreachableHint is the remedy for a server that cannot be reached, or is not trusted.
func UnreachableHint(err error) string {
	if hint := troubleHints[session.TroubleOf(err)]; hint != "" {
		return hint
	}
	var unresolved *net.DNSError
	var wrong *session.SchemeError
	switch {
	case errors.Is(err, &soapjms.Error{Code: soapjms.Unreachable}):
		return "is there a broker that speaks AMQP 1.0?"
	case errors.Is(err, &soapjms.Error{Code: soapjms.TooLarge}), errors.Is(err, &soapjms.Error{Code: soapjms.Refused}):
		return ""
	case errors.As(err, &unresolved) && unresolved.IsNotFound:
		return "is the name right? --dns IP[:PORT] asks another DNS server"
	case errors.As(err, &unresolved):
		return "--dns IP[:PORT] names a DNS server to ask"
	case errors.As(err, &wrong):
		return "write " + wrong.Scheme + ":// in the URL, or name another port"
	}
	return "is the server running, and are host and port right?"
}

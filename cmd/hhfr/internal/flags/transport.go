package flags

import (
	"net/url"

	"github.com/hhfr/hhfr/cmd/hhfr/internal/exit"
)

// PlainTransport is the value of --transport for plain SOAP with references.
const PlainTransport = "http"

// CheckTransport returns why streams to a URL cannot use a flag's transport; nil if they can.
func CheckTransport(u *url.URL, transport string, allowCleartext bool) error {
	switch {
	case transport != "tcp" && transport != "udp" && transport != PlainTransport:
		return exit.Usagef("", "--transport is tcp, udp or http, not %s", transport)
	case u.Scheme == "https" && transport == "udp" && !allowCleartext:
		return exit.Withf(exit.NoPeer,
			"without --transport the stream is in TLS; --allow-cleartext has it in cleartext",
			"--transport udp: streams over UDP are not encrypted, and the URL is https")
	}
	return nil
}

package decoding

import (
	"fmt"

	"github.com/hhfr/hhfr/cmd/hhfr/internal/command"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/printing"
	"github.com/hhfr/hhfr/internal/capture"
)

// keyHint is what to do about connections in TLS without their keys.
const keyHint = "run one of the peers with SSLKEYLOGFILE=FILE, which hhfr, curl and browsers take, and decode the " +
	"capture with --keylog FILE"

// keyless counts the connections in TLS whose keys are not known.
func keyless(s *capture.Summary) int {
	return s.Others[capture.OtherKeyless] + s.Others[capture.OtherKeylessHHFR]
}

// warnOfTLS warns of connections in TLS that were not decrypted.
func warnOfTLS(g *command.Global, s *capture.Summary) {
	if n := keyless(s); n > 0 {
		offers := ""
		if hhfr := s.Others[capture.OtherKeylessHHFR]; hhfr > 0 {
			offers = fmt.Sprintf(" (%d of them offering hhfr)", hhfr)
		}
		g.Warn("%s in TLS without keys%s: %s", printing.Count(n, "connection"), offers, keyHint)
	}
	if n := s.Others[capture.OtherPartlyDecrypted]; n > 0 {
		g.Warn("%s in TLS could be decrypted in part", printing.Count(n, "connection"))
	}
}

package capture

import (
	"slices"

	"github.com/hhfr/hhfr/internal/flow"
	"github.com/hhfr/hhfr/internal/tlsrecord"
	"github.com/hhfr/hhfr/pkg/negotiate"
)

// Kinds in [Summary.Others] of connections in TLS that were not decrypted.
const (
	// OtherKeyless are those whose secrets are not known; OtherKeylessHHFR those of them whose
	// client offers hhfr.
	OtherKeyless     = "TLS connections without their keys"
	OtherKeylessHHFR = "TLS connections that offer hhfr, without their keys"
	// OtherPartlyDecrypted are those that were decrypted up to some place only.
	OtherPartlyDecrypted = "TLS connections that are decrypted in part"
)

// opaque names a connection in TLS that was not decrypted.
func opaque(tls *flow.TLS) string {
	switch tls.Why {
	case tlsrecord.Joined:
		return "TLS connections that began before the capture, or without their first packets"
	case tlsrecord.Unsupported:
		return "TLS connections of versions or cipher suites that are not decrypted"
	case tlsrecord.Damaged:
		return "TLS connections that are damaged, or whose keys do not fit"
	case tlsrecord.NoKeys:
	default:
		return "TLS connections without data"
	}
	if slices.Contains(tls.Offered, negotiate.Protocol) {
		return OtherKeylessHHFR
	}
	return OtherKeyless
}

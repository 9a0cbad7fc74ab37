package server

import (
	"cmp"
	"strings"

	"github.com/hhfr/hhfr/internal/proxy"
)

// ContextPath is where the context service is at an address that has others.
const ContextPath = proxy.ContextPath

// StreamsAt lists where streams are accepted, by the name of the transport.
func StreamsAt(addrs map[string]string) string {
	var at []string
	for _, name := range []string{"tls", "tcp", "udp"} {
		if addrs[name] != "" {
			at = append(at, name+" "+addrs[name])
		}
	}
	return cmp.Or(strings.Join(at, ", "), "none")
}

package httpmsg

import (
	"crypto/tls"
	"net"

	"github.com/hhfr/hhfr/internal/netconn"
)

// TLS is the state of the TLS that a connection is inside; nil: of none.
func TLS(c net.Conn) *tls.ConnectionState {
	secure, ok := netconn.As[interface{ ConnectionState() tls.ConnectionState }](c)
	if !ok {
		return nil
	}
	state := secure.ConnectionState()
	return &state
}

package httpmsg_test

import (
	"crypto/tls"
	"net"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/hhfr/hhfr/internal/httpmsg"
	"github.com/hhfr/hhfr/internal/netconn"
)

// TestTLS: the state is found below what wraps a connection.
func TestTLS(t *testing.T) {
	here, there := net.Pipe()
	defer func() { _, _ = here.Close(), there.Close() }()
	assert.Nil(t, httpmsg.TLS(here))
	assert.NotNil(t, httpmsg.TLS(netconn.Of(tls.Client(here, &tls.Config{ServerName: "x"}))))
}

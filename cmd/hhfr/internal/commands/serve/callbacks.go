package serve

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"

	"github.com/hhfr/hhfr/cmd/hhfr/internal/recording"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/trust"
	"github.com/hhfr/hhfr/internal/resolve"
)

// callbackClient sends what goes to the addresses that clients of --soap-rm name. A recording has
// it, of TLS the cleartext.
func callbackClient(system resolve.System, rec *recording.TrafficRecording) (*http.Client, error) {
	roots, err := trust.TermuxRoots(system)
	if err != nil {
		return nil, err
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.TLSClientConfig = &tls.Config{RootCAs: roots} // behind a proxy from the environment
	transport.DialContext = rec.Over(new(net.Dialer).DialContext)
	transport.DialTLSContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
		c, err := (&tls.Dialer{Config: transport.TLSClientConfig.Clone()}).DialContext(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		return rec.Dial(c), nil
	}
	return &http.Client{Transport: transport}, nil
}

package sources

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"

	"github.com/hhfr/hhfr/cmd/hhfr/internal/exit"
)

// attach asks a server for what passes from now on, as pcapng, at the address of its --metrics: a
// port, or HOST:PORT.
func attach(ctx context.Context, addr string) (io.ReadCloser, error) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		host, port = "", addr
	}
	if host == "" {
		host = "127.0.0.1"
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+net.JoinHostPort(host, port)+"/packets", nil)
	if err != nil {
		return nil, exit.Usage(fmt.Errorf("--attach: %w", err), "it takes PORT or HOST:PORT")
	}
	resp, err := new(http.Transport).RoundTrip(req)
	if err != nil {
		return nil, exit.With(exit.NoPeer, fmt.Errorf("--attach: %w", err),
			"hhfr serve --metrics "+addr+" --packets would be there")
	}
	if resp.StatusCode == http.StatusOK {
		return resp.Body, nil
	}
	const most = 256 // bytes of what it says
	why, _ := io.ReadAll(io.LimitReader(resp.Body, most))
	_ = resp.Body.Close()
	return nil, exit.Withf(exit.Failed, "", "--attach %s: %s: %s", addr, resp.Status, strings.TrimSpace(string(why)))
}

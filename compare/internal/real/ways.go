package real

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"

	"github.com/hhfr/hhfr/compare/internal/program"
)

// TunnelArg, with RunTunnel's arguments behind it, makes the program one end of a tunnel.
const TunnelArg = "tunnel"

// httpOf reads the first line of hhfr, which has its addresses.
func (s *stacks) httpOf(p *program.Process, path string) (endpoint, error) {
	var said struct{ Addresses map[string]string }
	if err := json.Unmarshal([]byte(p.First), &said); err != nil {
		return endpoint{}, fmt.Errorf("hhfr said %q: %w", p.First, err)
	}
	return endpoint{said.Addresses["http"], path}, nil
}

// opened is a way from clients to a server over the link.
type opened struct {
	tap  *tap
	host string // where clients connect to
	ends []*program.Process
}

func (o *opened) close() error {
	for i := len(o.ends) - 1; i >= 0; i-- { // the near one first
		o.ends[i].End()
	}
	if o.tap == nil {
		return nil
	}
	return o.tap.close()
}

// openDirect is the link alone, which records what the client's end has.
func openDirect(ctx context.Context, server string, record io.Writer) (o *opened, err error) {
	o = &opened{}
	if o.tap, err = openTap(ctx, server, record); err == nil {
		o.host = o.tap.addr()
	}
	return o, err
}

// openPair is a pair of proxies that meet for the first time, once they have met.
func (s *stacks) openPair(ctx context.Context, server string, args ...string) (o *opened, err error) {
	o = &opened{}
	half := func(args ...string) (string, error) {
		args = append([]string{"proxy", "--listen", "127.0.0.1:0", "--store", "mem:", "-o", "json"}, args...)
		p, err := program.Start(ctx, nil, s.hhfr, args...)
		if err != nil {
			return "", err
		}
		o.ends = append(o.ends, p)
		at, err := s.httpOf(p, "")
		return at.host, err
	}
	far, err := half("--upstream", upstream(server))
	if err != nil {
		return o, err
	}
	if o.tap, err = openTap(ctx, far, nil); err != nil {
		return o, err
	}
	if o.host, err = half(append(args, "--upstream", upstream(o.tap.addr()), "-v")...); err != nil {
		return o, err
	}
	return o, o.ends[1].Told(ctx, "msg=session ")
}

func upstream(host string) string { return (&url.URL{Scheme: "http", Host: host}).String() }

// openTunnel is a tunnel with a compressor.
func openTunnel(ctx context.Context, server, with string) (o *opened, err error) {
	o = &opened{}
	self, err := os.Executable()
	if err != nil {
		return o, err
	}
	far, err := program.Start(ctx, nil, self, TunnelArg, "far", with, server)
	if err != nil {
		return o, err
	}
	o.ends = append(o.ends, far)
	if o.tap, err = openTap(ctx, far.First, nil); err != nil {
		return o, err
	}
	near, err := program.Start(ctx, nil, self, TunnelArg, "near", with, o.tap.addr())
	if err != nil {
		return o, err
	}
	o.ends = append(o.ends, near)
	o.host = near.First
	return o, nil
}

// through opens a way, has calls made, and closes it.
func through(ctx context.Context, o *opened, err error, calls func(host string) error) (t Traffic, failed error) {
	if err == nil {
		err = calls(o.host)
	}
	if err == nil {
		t, err = o.tap.quiet(ctx)
	}
	return t, errors.Join(err, o.close())
}

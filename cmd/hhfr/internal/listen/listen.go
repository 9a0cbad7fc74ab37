// Package listen opens the listeners of commands.
package listen

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"strings"
	"syscall"

	"github.com/spf13/pflag"

	"github.com/hhfr/hhfr/cmd/hhfr/internal/exit"
	"github.com/hhfr/hhfr/pkg/streamer"
	"github.com/hhfr/hhfr/pkg/streamer/tcp"
	streamtls "github.com/hhfr/hhfr/pkg/streamer/tls"
	"github.com/hhfr/hhfr/pkg/streamer/udp"
)

// None is the value of --tcp and --udp that disables these streams.
const None = "none"

// Flag declares --listen of a server.
func Flag(f *pflag.FlagSet, to *string, value string) {
	f.StringVar(to, "listen", value, "address to listen at; port 0 takes a free one")
}

// sameTries bounds the attempts to find a port that is also free for UDP, with --listen on port 0.
const sameTries = 20

// At opens a listener for connections; its error names the flag.
func At(ctx context.Context, flag, addr string) (net.Listener, error) {
	return with(ctx, flag, addr, tcp.Transport{})
}

func with(ctx context.Context, flag, addr string, transport streamer.Transport) (net.Listener, error) {
	l, err := transport.Listen(ctx, addr)
	switch {
	case err == nil:
		return l, nil
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, exit.Withf(exit.Failed, "choose another with "+flag+" 127.0.0.1:PORT; port 0 takes a free one",
			"%s %s: the port is in use", flag, addr)
	case errors.Is(err, syscall.EACCES):
		return nil, exit.Withf(exit.Failed, "ports below 1024 are for root; choose another with "+flag,
			"%s %s: no permission for that port", flag, addr)
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return nil, exit.Withf(exit.Failed, "127.0.0.1 is this machine alone, 0.0.0.0 all its networks",
			"%s %s: that address is not one of this machine", flag, addr)
	}
	return nil, exit.Usagef(flag+" takes HOST:PORT", "%s %s: %w", flag, addr, err)
}

// Streams opens the listener of --tcp, in TLS if secure is given; nil if streams come to
// --listen, or are disabled.
func Streams(ctx context.Context, addr string, secure *tls.Config) (net.Listener, error) {
	if addr == "" || addr == None {
		return nil, nil
	}
	var transport streamer.Transport = tcp.Transport{}
	if secure != nil {
		transport = streamtls.New(secure, nil)
	}
	return with(ctx, "--tcp", addr, transport)
}

// Datagrams opens the listener of --udp; nil if streams over UDP come to --listen, or are disabled.
func Datagrams(ctx context.Context, addr string) (net.Listener, error) {
	if addr == "" || addr == None {
		return nil, nil
	}
	return with(ctx, "--udp", addr, udp.Transport{})
}

// Same opens a listener at addr, and one for datagrams at the same address and port.
func Same(ctx context.Context, addr string) (l, datagrams net.Listener, err error) {
	for range sameTries {
		if l, err = At(ctx, "--listen", addr); err != nil {
			return nil, nil, err
		}
		if datagrams, err = (udp.Transport{}).Listen(ctx, l.Addr().String()); err == nil {
			return l, datagrams, nil
		}
		err = errors.Join(exit.Withf(exit.Failed,
			"--udp HOST:PORT has streams over UDP elsewhere, --udp none does without",
			"--listen %s: no UDP at that number: %w", l.Addr(), err), l.Close())
		if !strings.HasSuffix(addr, ":0") {
			break
		}
	}
	return nil, nil, err
}

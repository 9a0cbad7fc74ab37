package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strings"
	"syscall"

	"github.com/hhfr/hhfr/pkg/streamer"
	"github.com/hhfr/hhfr/pkg/streamer/tcp"
	streamtls "github.com/hhfr/hhfr/pkg/streamer/tls"
	"github.com/hhfr/hhfr/pkg/streamer/udp"
)

// noAddress is the value of --tcp and --udp that disables these streams.
const noAddress = "none"

// sameTries bounds the attempts to find a port that is also free for UDP, with --listen on port 0.
const sameTries = 20

// listen opens a listener; its error names the flag.
func listen(ctx context.Context, flag, addr string,
	open func(context.Context, string) (net.Listener, error)) (net.Listener, error) {
	l, err := open(ctx, addr)
	switch {
	case err == nil:
		return l, nil
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, failure(exitFailed, fmt.Errorf("%s %s: the port is in use", flag, addr),
			"choose another with "+flag+" 127.0.0.1:PORT; port 0 takes a free one")
	case errors.Is(err, syscall.EACCES):
		return nil, failure(exitFailed, fmt.Errorf("%s %s: no permission for that port", flag, addr),
			"ports below 1024 are for root; choose another with "+flag)
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return nil, failure(exitFailed, fmt.Errorf("%s %s: that address is not one of this machine", flag, addr),
			"127.0.0.1 is this machine alone, 0.0.0.0 all its networks")
	}
	return nil, usage(fmt.Errorf("%s %s: %w", flag, addr, err), flag+" takes HOST:PORT")
}

// listenStreams opens the listener of --tcp, in TLS if secure is given; nil if streams come to
// --listen, or are disabled.
func listenStreams(ctx context.Context, addr string, secure *tls.Config) (net.Listener, error) {
	if addr == "" || addr == noAddress {
		return nil, nil
	}
	var transport streamer.Transport = tcp.Transport{}
	if secure != nil {
		transport = streamtls.New(secure, nil)
	}
	return listen(ctx, "--tcp", addr, transport.Listen)
}

// listenSame opens a listener at addr, and one for datagrams at the same address and port.
func listenSame(ctx context.Context, addr string) (l, datagrams net.Listener, err error) {
	for range sameTries {
		if l, err = listen(ctx, "--listen", addr, tcp.Transport{}.Listen); err != nil {
			return nil, nil, err
		}
		if datagrams, err = (udp.Transport{}).Listen(ctx, l.Addr().String()); err == nil {
			return l, datagrams, nil
		}
		err = errors.Join(failure(
			exitFailed, fmt.Errorf("--listen %s: no UDP at that number: %w", l.Addr(), err),
			"--udp HOST:PORT has streams over UDP elsewhere, --udp none does without",
		), l.Close())
		if !strings.HasSuffix(addr, ":0") {
			break
		}
	}
	return nil, nil, err
}

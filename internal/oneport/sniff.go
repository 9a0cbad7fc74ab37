package oneport

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"time"

	"github.com/hhfr/hhfr/internal/frame"
	"github.com/hhfr/hhfr/internal/http1"
	"github.com/hhfr/hhfr/internal/sock"
)

// sniff determines the kind of a connection within a time, and hands it out.
func (p *Port) sniff(conn net.Conn, within time.Duration) {
	ctx, cancel := context.WithCancel(p.ctx)
	defer cancel()
	defer p.cfg.Clock.AfterFunc(within, cancel).Stop()
	in := sock.NewSource(conn, p.cfg.Clock)
	if p.secure == nil {
		p.tell(ctx, in)
		return
	}
	first, err := in.Wait(ctx, 0, 0)
	switch {
	case err != nil:
		_ = conn.Close() // it may be silent for as long as a handshake may take
	case first[0] == handshakeRecord:
		p.handshake(ctx, in)
	default:
		p.refuse(ctx, in)
	}
}

// tell hands out a connection by its first bytes.
func (p *Port) tell(ctx context.Context, in *sock.Source) {
	start, err := in.Wait(ctx, 0, p.cfg.Silence)
	own, more := false, true
	for more && err == nil {
		if own, more = p.own(ctx, start); more {
			start, err = in.Wait(ctx, len(start), 0)
		}
	}
	switch {
	case p.ctx.Err() != nil && len(start) == 0, isBroken(ctx, err):
		_ = in.Conn.Close()
	case own:
		p.streams.give(giveBack(in, err))
	default:
		p.http.give(giveBack(in, err))
	}
}

// isBroken reports whether a connection is useless. A connection whose client only listens from now
// on is not.
func isBroken(ctx context.Context, err error) bool {
	return err != nil && ctx.Err() == nil && !errors.Is(err, io.EOF) && !errors.Is(err, sock.ErrPaused)
}

// own reports whether a connection is a stream of this server, or that more bytes are needed.
func (p *Port) own(ctx context.Context, start []byte) (own, more bool) {
	switch {
	case !frame.MayOpen(start) || len(start) > maxAhead:
		return false, false
	case !frame.BeginsStream(start):
		return false, true
	case p.cfg.Own == nil:
		return true, false
	}
	return p.cfg.Own(ctx, start)
}

// handshakeRecord is the first byte of TLS: the type of the record of a ClientHello (RFC 8446,
// section 5.1). No method of HTTP and no stream begins with it.
const handshakeRecord = 0x16

// handshake opens TLS, and hands out the inner connection.
func (p *Port) handshake(ctx context.Context, in *sock.Source) {
	conn := tls.Server(giveBack(in, nil), p.secure)
	if err := conn.HandshakeContext(ctx); err != nil {
		p.cfg.Log.Info("handshake", "peer", conn.RemoteAddr(), "err", err)
		_ = conn.Close()
		return
	}
	switch conn.ConnectionState().NegotiatedProtocol {
	case Protocol:
		p.streams.give(conn)
	case "":
		p.tell(ctx, sock.NewSource(conn, p.cfg.Clock))
	default:
		p.http.give(conn)
	}
}

// serverConfig is a configuration in which clients with TLS 1.3 can select further protocols,
// before all others.
func serverConfig(cfg *tls.Config, further []string) *tls.Config {
	old := cfg.Clone()
	if old.NextProtos == nil {
		old.NextProtos = []string{"http/1.1"}
	}
	all := old.Clone()
	all.NextProtos = slices.Concat(further, old.NextProtos)
	all.GetConfigForClient = func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
		if cfg.GetConfigForClient != nil {
			theirs, err := cfg.GetConfigForClient(hello)
			if err != nil {
				return nil, err
			}
			if theirs != nil {
				theirs = theirs.Clone()
				theirs.GetConfigForClient = nil
				return serverConfig(theirs, further).GetConfigForClient(hello)
			}
		}
		if slices.Contains(hello.SupportedVersions, tls.VersionTLS13) {
			return all, nil
		}
		return old, nil
	}
	return all
}

// cleartextText is for clients that should have used https; pkg/negotiate recognizes it by its last
// words.
const cleartextText = "hhfr: this address takes https only\n"

var errCleartext = errors.New("cleartext where only TLS is taken")

// refuse ends a connection without TLS at a port that takes TLS only; a client that speaks HTTP is
// told so.
func (p *Port) refuse(ctx context.Context, in *sock.Source) {
	defer func() { _ = in.Conn.Close() }()
	p.cfg.Log.Info("handshake", "peer", in.Conn.RemoteAddr(), "err", errCleartext)
	const method = 3 // no method is shorter
	start, _ := in.Wait(ctx, method-1, p.cfg.Silence)
	if len(start) < method || !http1.IsToken(start[:method]) {
		return
	}
	_, _ = fmt.Fprintf(in.Conn, "HTTP/1.1 %d %s\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: %d\r\n"+
		"Connection: close\r\n\r\n%s", http.StatusBadRequest, http.StatusText(http.StatusBadRequest),
		len(cleartextText), cleartextText)
	sock.Finish(ctx, in)
}

package proxy

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"sync"

	"github.com/hhfr/hhfr/internal/http1"
	"github.com/hhfr/hhfr/internal/inproc"
	"github.com/hhfr/hhfr/internal/meter"
	"github.com/hhfr/hhfr/internal/oneport"
	"github.com/hhfr/hhfr/internal/session"
	"github.com/hhfr/hhfr/internal/sock"
)

// plainOrStream forwards a connection unchanged, beginning with the bytes of the client that were
// read already. It returns when both directions have ended. For a client of silent, which has sent
// nothing, it returns early, with the connection, if the first bytes are a late hello of this
// proxy's. why is the reason, for the meter.
func (u *upstream) plainOrStream(in *sock.Source, first []byte, why string, silent *front) (stream net.Conn) {
	p := u.p
	up, err := u.dialPlain(p.ctx)
	if err != nil {
		u.reach.failed(err)
		p.refuse(in, first, err)
		return nil
	}
	up = p.recorded(up)
	defer func() { _ = up.Close() }()
	defer context.AfterFunc(p.ctx, func() {
		sock.Reset(up)
		sock.Reset(in.Conn)
	})()
	ctx, cancel := context.WithCancel(p.ctx)
	defer cancel()
	var back sync.WaitGroup
	count := u.near.Plain(why)
	word := &firstWord{relayedReply: relayedReply{in.Conn, count, &u.reach}}
	back.Go(func() {
		n, err := io.Copy(word, up)
		if !word.isServers() {
			return
		}
		// a server reports its verdict on a client's certificate after the handshake
		if n == 0 && session.TroubleOf(err) != 0 {
			u.reach.failed(err)
			_, _ = in.Conn.Write(unreachable(err))
			err = nil
		}
		p.endBack(err, in, cancel)
	})
	if silent != nil && silent.responder != nil && silent.isLateStream(ctx, in) && word.take() {
		_ = up.Close()
		back.Wait()
		return oneport.GiveBack(in)
	}
	if n, err := up.Write(first); err == nil {
		count.Request(n)
		_ = copyUp(ctx, up, in, count) // the direction back shows how the connection ended
	}
	back.Wait()
	return nil
}

// hints are the remedies for trouble with certificates, by the flags of the command.
var hints = map[session.Trouble]string{
	session.Untrusted: "--cacert FILE trusts those who signed it",
	session.OtherHost: "name a host of its certificate in --upstream, or give the upstream another certificate",
	session.OutOfTime: "give the upstream another certificate, or set the clock",
	session.Wanted:    "--upstream-cert FILE and --upstream-key FILE show one",
	session.Rejected:  "--upstream-cert and --upstream-key are to be of those whom the upstream trusts",
}

// endBack ends the direction to the client as the upstream did. The other direction may continue
// for a while: the end of one direction does not end the other.
func (p *Proxy) endBack(err error, in *sock.Source, cancel context.CancelFunc) {
	if err != nil {
		sock.Reset(in.Conn)
		cancel()
		return
	}
	_ = sock.CloseWrite(in.Conn)
	p.cfg.Clock.AfterFunc(halfOpen, cancel)
}

// copyUp copies what a client sends until it ends, and passes that end on.
func copyUp(ctx context.Context, up net.Conn, in *sock.Source, count *meter.Plain) error {
	for {
		data, err := in.Wait(ctx, 0, 0)
		if len(data) > 0 {
			if _, err := up.Write(data); err != nil {
				return err
			}
			count.Request(len(data))
			in.Take(len(data))
			continue
		}
		if errors.Is(err, io.EOF) {
			return sock.CloseWrite(up)
		}
		if ctx.Err() == nil {
			sock.Reset(up)
		}
		return err
	}
}

// refuse reports to a client that speaks HTTP why nothing can be forwarded.
func (p *Proxy) refuse(in *sock.Source, first []byte, err error) {
	if len(first) == 0 {
		first, _ = in.Wait(p.ctx, 0, p.cfg.Silence)
	}
	if http1.LooksLikeStart(first) {
		_, _ = in.Conn.Write(unreachable(err))
	}
	sock.Finish(p.ctx, in)
}

// unreachable is the reply for an upstream that cannot be connected to.
func unreachable(err error) []byte {
	if errors.Is(err, &Error{Code: NoRoute}) {
		return errorReply(http.StatusNotFound, "hhfr: "+errors.Unwrap(err).Error())
	}
	if errors.Is(err, &Error{Code: NoRoom}) {
		return busyReply(noRoomText)
	}
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, os.ErrDeadlineExceeded) {
		return errorReply(http.StatusGatewayTimeout,
			"hhfr: the upstream did not accept a connection in time; the request was not sent")
	}
	var wrong *session.SchemeError
	if errors.As(err, &wrong) {
		text := "hhfr: no connection to the upstream: " + wrong.Error() + "; the request was not sent"
		return errorReply(http.StatusBadGateway, text)
	}
	if trouble := session.TroubleOf(err); trouble != 0 {
		fate := "sent"
		if trouble == session.Wanted || trouble == session.Rejected {
			fate = "processed" // it was in transit when the server reported it
		}
		text := "hhfr: no connection to the upstream: " + trouble.String() + "; the request was not " + fate
		return errorReply(http.StatusBadGateway, text)
	}
	return errorReply(http.StatusBadGateway, "hhfr: no connection to the upstream; the request was not sent")
}

// dialPlain opens a connection to the upstream itself.
func (u *upstream) dialPlain(ctx context.Context) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, u.p.cfg.Timeout)
	defer cancel()
	port := u.cfg.URL.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.cfg.URL.Scheme]
	}
	conn, err := u.p.cfg.Dial(ctx, "tcp", net.JoinHostPort(u.cfg.URL.Hostname(), port))
	if err != nil {
		return nil, &Error{Code: Unreachable, At: -1, Err: err}
	}
	if u.cfg.URL.Scheme == "http" {
		return conn, nil
	}
	secure, err := u.secure(ctx, conn)
	if err != nil {
		var record tls.RecordHeaderError
		if errors.As(err, &record) {
			err = &session.SchemeError{Scheme: "http"}
		}
		return nil, &Error{Code: Unreachable, At: -1, Err: err}
	}
	return secure, nil
}

// secure opens TLS with the upstream on a connection, and closes that on an error.
func (u *upstream) secure(ctx context.Context, conn net.Conn) (net.Conn, error) {
	cfg := &tls.Config{}
	if current := u.cfg.currentTLS(); current != nil {
		cfg = current.Clone()
	}
	if cfg.ServerName == "" {
		cfg.ServerName = u.cfg.URL.Hostname()
	}
	cfg.NextProtos = []string{"http/1.1"}
	secure := tls.Client(conn, cfg)
	if err := secure.HandshakeContext(ctx); err != nil {
		_ = conn.Close()
		return nil, err
	}
	return secure, nil
}

// dial opens a connection to the upstream for a lane: over a lane of the next pair, if
// there is one. A tunnel may go to an upstream of another scheme: clients speak TLS to it
// themselves.
func (u *upstream) dial(ctx context.Context, tunnel bool) (net.Conn, error) {
	if u.forwarder != nil && !tunnel {
		return u.dialInSequence(), nil
	}
	l, err := u.links.Get()
	if wrong := schemeError(err); wrong != nil && !tunnel {
		return nil, wrong
	}
	if l == nil {
		return u.dialPlain(ctx)
	}
	here, there := inproc.Pipe(0)
	u.p.wait.Go(func() {
		in := u.p.newSource(there)
		defer func() { _ = in.Conn.Close() }()
		defer context.AfterFunc(u.p.ctx, func() { sock.Reset(there) })()
		u.carry(in, journey{to: u, whole: true})
	})
	return here, nil
}

// schemeError is why no HTTP can be forwarded to an upstream of another scheme than its URL says;
// nil for other errors, for which plain forwarding is left.
func schemeError(err error) error {
	var wrong *session.SchemeError
	if errors.As(err, &wrong) {
		return &Error{Code: Unreachable, At: -1, Err: wrong}
	}
	return nil
}

// dialOffer opens the connection of an offer, with TLS or without. A recorder sees the cleartext,
// as with other connections.
func (u *upstream) dialOffer(secure bool) func(ctx context.Context, network, addr string) (net.Conn, error) {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := u.p.cfg.Dial(ctx, network, addr)
		if err == nil && secure {
			conn, err = u.secure(ctx, conn)
		}
		if err != nil {
			return nil, err
		}
		return u.p.recorded(conn), nil
	}
}

func (p *Proxy) recorded(conn net.Conn) net.Conn {
	if p.cfg.WrapDialed == nil {
		return conn
	}
	return p.cfg.WrapDialed(conn)
}

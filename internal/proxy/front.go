package proxy

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"sync/atomic"

	"github.com/hhfr/hhfr/internal/accept"
	"github.com/hhfr/hhfr/internal/frame"
	"github.com/hhfr/hhfr/internal/oneport"
	"github.com/hhfr/hhfr/internal/responder"
	"github.com/hhfr/hhfr/internal/typed"
	"github.com/hhfr/hhfr/pkg/streamer"
)

// front is a listener, with what comes in by it: clients, offers, and streams of near proxies.
type front struct {
	p         *core
	contexts  *contextServer
	now       atomic.Pointer[routes] // nil: it was closed
	listen    net.Listener
	streams   net.Listener // at another address; nil: none
	port      *oneport.Port
	responder *responder.Responder // nil: never far
	offers    http.Handler
	use       useCount
	accepting sync.WaitGroup
}

// newFront makes one of a listener, which accepts nothing before begin.
func (p *core) newFront(l, streams net.Listener, contexts *contextServer) (*front, error) {
	f := &front{p: p, contexts: contexts, listen: l, streams: streams}
	if streams != nil {
		f.streams = accept.Steady(streams, p.cfg.Clock, p.cfg.Log)
	}
	if !p.cfg.NearOnly {
		if err := f.newResponder(); err != nil {
			return nil, err
		}
	}
	f.use.release = func() {
		if f.responder != nil {
			_ = f.responder.Close()
		}
	}
	f.each(p.listening.add)
	return f, nil
}

// newResponder has the front answer those who ask for a stream.
func (f *front) newResponder() error {
	transport, addr := f.streamAddr()
	_, port, err := net.SplitHostPort(addr.String())
	if err != nil {
		return &Error{Code: BadConfig, Err: err}
	}
	cfg := &f.p.cfg
	f.responder, err = responder.New(responder.Config{
		Store: cfg.Store, Coders: cfg.Coders, Contract: func(string, bool) *typed.Contract { return cfg.Contract },
		Addresses: map[string]string{transport: net.JoinHostPort(cfg.Advertise, port)}, Admit: cfg.Admit,
		Serve:    func(context.Context, string, *streamer.Exchange) {}, // ServeConn has handlers of its own
		WrapConn: cfg.WrapAccepted, OnSession: cfg.OnSession, Stream: cfg.Stream,
		MaxSessions: cfg.MaxConns, MaxPerPeer: cfg.MaxPerPeer,
		Common: cfg.Common, Archive: cfg.Archive, Clock: cfg.Clock, Log: cfg.Log,
	})
	if err != nil {
		return err
	}
	f.offers = f.responder.Handler(http.NotFoundHandler())
	return nil
}

// each calls do with each listener of it.
func (f *front) each(do func(net.Listener)) {
	do(f.listen)
	if f.streams != nil {
		do(f.streams)
	}
}

// discard closes one that was never begun.
func (f *front) discard() {
	f.each(f.p.listening.remove)
	_ = f.listen.Close()
	f.use.retire()
}

// begin accepts connections from now on.
func (f *front) begin() {
	cfg := &f.p.cfg
	f.port = oneport.New(f.listen, oneport.Config{
		TLS: cfg.ListenTLS, NoStreams: cfg.NearOnly, Own: f.own, Silence: cfg.Silence, Timeout: cfg.Timeout,
		MaxSniffed: cfg.MaxConns, MaxPerPeer: cfg.MaxPerPeer, Clock: cfg.Clock, Log: cfg.Log,
	})
	f.accepting.Go(func() { f.accept(f.port.HTTP(), f.enterClient, f.serveClient) })
	f.accepting.Go(func() { f.accept(f.port.Streams(), enterStream, f.serveStream) })
	if f.streams != nil {
		f.accepting.Go(func() { f.accept(f.streams, enterStream, f.serveStream) })
	}
}

// end accepts nothing more; what was accepted has its place when it returns.
func (f *front) end() {
	f.each(f.p.listening.remove)
	_ = f.port.Close()
	if f.streams != nil {
		_ = f.streams.Close()
	}
	f.accepting.Wait()
}

// streamAddr is the address at which streams are accepted, and their transport.
func (f *front) streamAddr() (transport string, addr net.Addr) {
	transport, addr = "tcp", f.listen.Addr()
	if f.p.cfg.ListenTLS != nil {
		transport = "tls"
	}
	if f.streams != nil {
		addr = f.streams.Addr()
	}
	return transport, addr
}

// own reports whether a connection that begins like a stream is one of a session that was
// negotiated here, or that more bytes are needed to know. All else is the client's, which may speak
// hhfr with the upstream.
func (f *front) own(ctx context.Context, start []byte) (own, more bool) {
	hello, ok := frame.Opening(start)
	if !ok {
		return false, frame.Incomplete(start)
	}
	return f.responder.Knows(ctx, hello.Session, hello.Token), false
}

// enterClient takes the slot of a client. A connection for which there is none is refused, as long
// as few are.
func (f *front) enterClient(conn net.Conn) (leave func(), ok bool) {
	p := f.p
	if leave, ok = p.conns.Enter(conn.RemoteAddr()); ok {
		return leave, true
	}
	done, ok := p.refusals.Enter(conn.RemoteAddr())
	if !ok {
		_ = conn.Close()
		return nil, false
	}
	p.wait.Go(func() {
		defer done()
		f.refuse(conn, done)
	})
	return nil, false
}

// refuse tells a client that there is no slot for it, unless it asks for a stream, which the
// responder bounds: a near proxy comes back also where clients have all slots of its address. taken
// is called for such a stream.
func (f *front) refuse(conn net.Conn, taken func()) {
	ctx, cancel := context.WithTimeout(f.p.ctx, accept.RefusalTime)
	defer cancel()
	in := f.p.newSource(conn)
	h, n, st, _ := readHead(ctx, in, 0, 0, false)
	if st == stateWhole && f.responder != nil && string(h.Method()) == http.MethodOptions && asks(&h) {
		h = h.Clone()
		if f.upgrade(in, &h, n, taken) {
			_ = in.Conn.Close()
			return
		}
	}
	accept.Refuse(f.p.ctx, oneport.GiveBack(in))
}

// enterStream leaves it to the responder to bound streams.
func enterStream(net.Conn) (leave func(), ok bool) { return func() {}, true }

// accept serves the connections of a listener that enter admits.
func (f *front) accept(l net.Listener, enter func(net.Conn) (leave func(), ok bool), serve func(net.Conn)) {
	p := f.p
	for {
		conn, err := l.Accept()
		if err != nil {
			if p.ctx.Err() == nil && !errors.Is(err, net.ErrClosed) {
				p.failed <- &Error{Code: Failed, Err: fmt.Errorf("%s: %w", l.Addr(), err)}
			}
			return
		}
		leave, ok := enter(conn)
		if !ok {
			continue
		}
		if !f.use.enter() {
			leave()
			_ = conn.Close()
			return
		}
		p.wait.Go(func() {
			defer f.use.leave()
			defer leave()
			serve(conn)
		})
	}
}

// routes are those of this listener now; nil: it was closed.
func (f *front) routes() *routes { return f.now.Load() }

// serveStream serves a connection that came in where streams are accepted.
func (f *front) serveStream(conn net.Conn) {
	far := newFar(f.p, f, conn.RemoteAddr())
	defer far.end()
	f.responder.ServeConn(f.p.ctx, conn, far.opens)
}

package negotiate

import (
	"context"
	"net"

	"github.com/hhfr/hhfr/internal/accept"
	"github.com/hhfr/hhfr/pkg/streamer"
)

// Opened is what an end wants to know of a stream that it accepts by [Responder.ServeConn].
type Opened struct {
	// Handler serves the exchanges of this stream, heads as they came. Required.
	Handler streamer.Handler
	// Stream, if given, gets the stream once it is open, maybe after the first exchange. It must not wait.
	Stream func(*streamer.Stream)
}

// ServeConn runs one stream over a connection that the caller accepted, to its end. It is [Responder.ServeStreams] for ends that tell streams apart: open is called when
// a session is joined, and what it returns serves this stream alone; Serve and OnStream of the configuration are not used. It owns conn. It returns false at once when there are
// too many connections, or the responder is closed.
func (r *Responder) ServeConn(ctx context.Context, conn net.Conn, open func(Facts) Opened) bool {
	end, ok := r.begin(conn)
	if !ok {
		return false
	}
	defer end()
	if r.cfg.WrapConn != nil {
		conn = r.cfg.WrapConn(conn)
	}
	running, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(r.ctx, cancel)()
	var facts *Facts
	var opened Opened
	cfg, headers := r.accepting()
	cfg.Accept = func(ctx context.Context, h streamer.Hello) (streamer.Admission, error) {
		joined, err := r.join(ctx, h, accept.Peer(conn.RemoteAddr().String()))
		if err != nil {
			return streamer.Admission{}, err
		}
		facts, headers.blocks = joined, joined.Headers
		coder, err := r.cfg.Coders(ctx, CoderSpec{Representation: h.Representation, Limits: r.cfg.Stream.Limits, PeerKnows: facts.PeerShapes})
		if err != nil {
			return streamer.Admission{}, err
		}
		if r.cfg.OnSession != nil {
			r.cfg.OnSession(*facts, conn)
		}
		opened = open(*facts)
		return streamer.Admission{Coder: coder, Handler: opened.Handler}, nil
	}
	stream, err := streamer.Over(running, conn, cfg)
	if facts != nil {
		defer r.retire(facts)
	}
	if err != nil {
		r.cfg.Log.Info("stream refused", "peer", conn.RemoteAddr(), "err", err)
		return true
	}
	r.cfg.Log.Info("stream", "peer", conn.RemoteAddr(), "session", facts.Session.String())
	if opened.Stream != nil {
		opened.Stream(stream)
	}
	select {
	case <-stream.Done():
	case <-running.Done():
	}
	if err := stream.Close(); err != nil {
		r.cfg.Log.Info("stream ended", "peer", conn.RemoteAddr(), "session", facts.Session.String(), "err", err)
	}
	return true
}

package streamer_test

import (
	"context"
	"crypto/sha256"
	"io"
	"net"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/frame"
	"github.com/hhfr/hhfr/internal/inproc"
	"github.com/hhfr/hhfr/internal/shape/transit"
	"github.com/hhfr/hhfr/pkg/streamer"
)

// byHand is an initiator that writes frames by hand to a stream under test.
type byHand struct {
	t      testing.TB
	conn   net.Conn
	s      *streamer.Stream
	offset int64 // of what it writes next
	buf    []byte
}

// direction fills in what frames that are written by hand must say of those before them.
type direction struct {
	t         testing.TB
	checks    frame.Checks
	numbering frame.Numbering
	names     map[uint64][8]byte
	offset    int64
}

func newDirection(t testing.TB) *direction {
	return &direction{t: t, checks: frame.NewChecks(frame.OriginOf(handHello)), names: map[uint64][8]byte{},
		offset: int64(len(handHello.AppendTo(nil)))}
}

// fill completes f as the next frame behind the hello: the numbers of data, the checks of sync and
// close. A sync lists the shapes that it is given by number alone, all lanes, and what is open.
func (d *direction) fill(f frame.Frame) frame.Frame {
	d.t.Helper()
	switch v := f.(type) {
	case frame.Data:
		d.numbering.Choose(&v)
		parts, err := d.checks.Cut(&v, 0, 0)
		require.NoError(d.t, err)
		d.checks.Add(&v, &parts, func(n uint64) ([8]byte, bool) { return d.names[n], true })
		f = v
	case frame.Shape:
		switch {
		case v.Form == frame.Reference:
			d.names[v.Number] = frame.NameOf(v.Fingerprint)
		case v.Form == frame.Full && v.Offset == 0 && uint64(len(v.Piece)) == v.Total:
			octets, err := transit.Unpack(v.Piece, nil)
			require.NoError(d.t, err)
			d.names[v.Number] = frame.NameOf(sha256.Sum256(octets))
		}
	case frame.Sync:
		v.Word, v.Session, v.Representation, v.Offset = handHello.Word, handHello.Session, handHello.Representation,
			uint64(d.offset)
		v.Messages, v.Check, v.Lanes, v.Open = d.checks.Messages(), d.checks.Check(), d.numbering.Lanes(9),
			d.checks.Open()
		for i, s := range v.Shapes {
			v.Shapes[i].Name = d.names[s.Number]
		}
		d.numbering.Sync(v)
		d.checks.Next(v)
		f = v
	case frame.Cancel:
		d.checks.Cancel(v)
	case frame.Close:
		v.Messages, v.Check = d.checks.Messages(), d.checks.Check()
		f = v
	}
	d.offset += int64(len(f.AppendTo(nil)))
	return f
}

var handHello = frame.Hello{Session: session, Token: make([]byte, 16), Word: [8]byte{7}, Representation: 1,
	Limits: frame.Limits{MaxFragment: 16384, MaxMessage: 1 << 30, MaxShapes: 100, MaxShapeBytes: 1 << 20,
		MaxExchanges: 100, Window: 1 << 20, MaxHeld: 1 << 20}}

// meetByHand connects a stream, the responder, to an initiator by hand. The pipe is large enough
// for what tests write.
func meetByHand(t testing.TB, cfg streamer.Config, coder streamer.Coder, handler streamer.ExchangeHandler) *byHand {
	t.Helper()
	here, there := inproc.Pipe(8 << 20)
	h := &byHand{t: t, conn: here}
	cfg.Accept = func(context.Context, frame.Hello) (streamer.Admission, error) {
		return streamer.Admission{Coder: coder, Handler: handler}, nil
	}
	hello := handHello
	if cfg.Outgoing != nil {
		hello.Stages = frame.Headers
	}
	h.write(hello)
	var err error
	h.s, err = streamer.Over(context.Background(), there, cfg)
	require.NoError(t, err)
	t.Cleanup(func() {
		_ = here.Close()
		h.s.Abort(frame.CloseGoingAway, "")
	})
	_, ok := h.next().(frame.Hello)
	require.True(t, ok)
	return h
}

func (h *byHand) write(frames ...frame.Frame) {
	h.t.Helper()
	var b []byte
	for _, f := range frames {
		b = f.AppendTo(b)
	}
	h.raw(b)
}

func (h *byHand) raw(b []byte) {
	h.t.Helper()
	_, err := h.conn.Write(b)
	require.NoError(h.t, err)
	h.offset += int64(len(b))
}

// next reads a frame, nil at the end.
func (h *byHand) next() frame.Frame {
	h.t.Helper()
	for {
		f, n, err := frame.Parse(h.buf, 0, 0)
		require.NoError(h.t, err)
		if n > 0 {
			h.buf = h.buf[n:]
			return f
		}
		more := make([]byte, 65536)
		n, err = h.conn.Read(more)
		if n == 0 {
			require.ErrorIs(h.t, err, io.EOF)
			return nil
		}
		h.buf = append(h.buf[:len(h.buf):len(h.buf)], more[:n]...)
	}
}

// until reads frames up to the first of type F.
func until[F frame.Frame](h *byHand) F {
	h.t.Helper()
	for {
		f := h.next()
		require.NotNil(h.t, f, "the direction ended")
		if want, ok := f.(F); ok {
			return want
		}
	}
}

func request(payload string) frame.Data {
	return frame.Data{First: true, Last: true, Payload: []byte(payload)}
}

// named is a fragment that names its exchange.
func named(d frame.Data, exchange uint64) frame.Data {
	d.NamesExchange, d.Exchange = true, exchange
	return d
}

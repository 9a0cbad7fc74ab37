package session_test

import (
	"cmp"
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/datagram"
	"github.com/hhfr/hhfr/internal/link"
	"github.com/hhfr/hhfr/internal/responder"
	"github.com/hhfr/hhfr/internal/session"
	"github.com/hhfr/hhfr/pkg/negotiate"
	"github.com/hhfr/hhfr/pkg/streamer"
	"github.com/hhfr/hhfr/pkg/streamer/udp"
	"github.com/hhfr/hhfr/pkg/wsrm"
)

// inProcess connects an HTTP client with a handler, without a network.
type inProcess struct{ to http.Handler }

func (p inProcess) RoundTrip(req *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	p.to.ServeHTTP(w, req)
	return w.Result(), nil
}

// sentDatagram is one that an end has sent.
type sentDatagram struct {
	datagram.Datagram
	at time.Time
}

// watched is a socket that keeps what it sends.
type watched struct {
	net.PacketConn
	sent noted[sentDatagram]
}

// until returns those that it sent before a moment.
func (w *watched) until(then time.Time) []sentDatagram {
	all := w.sent.got()
	return slices.DeleteFunc(all, func(d sentDatagram) bool { return !d.at.Before(then) })
}

func (w *watched) WriteTo(p []byte, to net.Addr) (int, error) {
	if d, ok := datagram.Parse(slices.Clone(p)); ok {
		w.sent.note(sentDatagram{d, time.Now()})
	}
	return w.PacketConn.WriteTo(p, to)
}

// linked is the transport over UDP by an emulated link, a new one for each connection, to a
// responder.
type linked struct {
	t         *testing.T
	to        *responder.Handler
	profile   string
	next      string   // the profile of the next connection, if it is another
	near, far *watched // of the last connection
	early     int      // connections dialed early
	wait      sync.WaitGroup
}

func (l *linked) Dial(ctx context.Context, _ string) (net.Conn, error) {
	return udp.Dial(ctx, l.open(), l.far.LocalAddr(), udp.Config{})
}

func (l *linked) DialEarly(ctx context.Context, _ string) (net.Conn, error) {
	l.early++
	return udp.DialEarly(ctx, l.open(), l.far.LocalAddr(), udp.Config{})
}

// open makes the next link.
func (l *linked) open() net.PacketConn {
	profile := cmp.Or(l.next, l.profile)
	l.next = ""
	p, err := link.ParseProfile(profile)
	require.NoError(l.t, err)
	near, far, err := link.Packets(nil, p)
	require.NoError(l.t, err)
	l.near, l.far = &watched{PacketConn: near}, &watched{PacketConn: far}
	listener, err := udp.Listen(l.far, udp.Config{})
	require.NoError(l.t, err)
	l.wait.Go(func() { assert.NoError(l.t, l.to.ServeStreams(context.Background(), listener)) })
	return l.near
}

func (l *linked) Listen(context.Context, string) (net.Listener, error) { return nil, net.ErrClosed }

// A sequence continues over UDP in one round trip of the link: hello and message leave before the
// peer has sent anything, also before the address is validated, and the reply is in the first
// flight that comes back.
func TestSequencesGoOnInOneFlightOfDatagrams(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const rtt = 600 * time.Millisecond
		h, err := responder.NewHandler(http.HandlerFunc(repeat), responder.Config{
			Store: newStore(t), Addresses: map[string]string{"udp": ":1"},
		})
		require.NoError(t, err)
		by := &linked{t: t, to: h, profile: "geo"}
		cfg := session.Config{
			Mode: negotiate.Auto, HTTPClient: &http.Client{Transport: inProcess{h}}, Store: newStore(t),
			Transports: map[string]streamer.Transport{"udp": by}, Assurance: wsrm.AtLeastOnce, Reconnect: eventually,
		}
		s := dial(t, "http://127.0.0.1/soap", cfg)
		say(t, s, "by an offer")
		assert.Equal(t, negotiate.Explicit, s.Agreed().Mode)
		require.NoError(t, s.Close()) // and not finished: the sequence continues
		synctest.Wait()

		began := time.Now()
		s = dial(t, "http://127.0.0.1/soap", cfg)
		say(t, s, "goes on")
		assert.Equal(t, negotiate.Met, s.Agreed().Mode)
		assert.Less(t, time.Since(began), rtt+rtt/10, "a second round trip would show, and so would a timer")
		flight := by.near.until(began.Add(rtt - rtt/20))
		require.NotEmpty(t, flight)
		octets := 0
		for _, d := range flight {
			assert.Equal(t, datagram.Early, d.Kind, "nothing of the peer has been heard")
			octets += len(d.Packet)
		}
		assert.Less(t, octets, 200, "hello and message, once")
		back := by.far.until(began.Add(rtt - rtt/20))
		require.NotEmpty(t, back)
		sent, came := 0, 0
		for _, d := range back {
			assert.Equal(t, datagram.Answer, d.Kind, "the address has not shown that it receives")
			sent += 17 + len(d.Packet)
		}
		for _, d := range flight {
			came += 9 + len(d.Packet)
		}
		assert.LessOrEqual(t, sent, 3*came)
		require.NoError(t, s.Close())
		require.NoError(t, h.Close())
		by.wait.Wait()
	})
}

package link_test

import (
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/link"
)

// A real socket on an emulated link: its datagrams take their time in both directions, and some of
// them are lost.
func TestThrough(t *testing.T) {
	server, err := net.ListenPacket("udp", "127.0.0.1:0")
	require.NoError(t, err)
	go func() {
		buf := make([]byte, 100)
		for {
			n, from, err := server.ReadFrom(buf)
			if err != nil {
				return
			}
			_, _ = server.WriteTo(buf[:n], from)
		}
	}()
	p, err := link.ParseProfile("wifi,rtt=40ms,loss=30%,seed=3")
	require.NoError(t, err)
	real, err := net.ListenPacket("udp", "127.0.0.1:0")
	require.NoError(t, err)
	d, err := link.Through(nil, p, real, server.LocalAddr())
	require.NoError(t, err)
	assert.Equal(t, real.LocalAddr(), d.LocalAddr())
	began := time.Now()
	const sent = 100
	for n := range sent {
		_, err := d.WriteTo([]byte{byte(n)}, nil)
		require.NoError(t, err)
	}
	buf := make([]byte, 100)
	n, from, err := d.ReadFrom(buf)
	require.NoError(t, err)
	assert.Equal(t, 1, n)
	assert.Equal(t, server.LocalAddr().String(), from.String())
	assert.GreaterOrEqual(t, time.Since(began), 40*time.Millisecond)
	up, down := d.Stats()
	assert.EqualValues(t, sent, up.Sent)
	assert.InDelta(t, 30, up.Lost, 20)
	assert.LessOrEqual(t, down.Sent, up.Sent-up.Lost)
	assert.EqualValues(t, sent*29, up.Wire)
	assert.Equal(t, time.Duration(sent*29*8)*time.Second/50_000_000, p.Busy(up))
	require.NoError(t, d.Close())
	_, err = real.WriteTo(nil, server.LocalAddr())
	assert.ErrorIs(t, err, net.ErrClosed, "it is the link's")
	require.NoError(t, server.Close())
	_, err = link.Through(nil, link.Profile{}, nil, nil)
	assert.ErrorIs(t, err, &link.Error{Code: link.BadProfile})
	_, err = link.Relay(nil, p.Reliable())
	assert.NoError(t, err)
}

package session_test

import (
	"context"
	"net"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/link"
	"github.com/hhfr/hhfr/internal/responder"
	"github.com/hhfr/hhfr/internal/session"
	"github.com/hhfr/hhfr/pkg/negotiate"
	"github.com/hhfr/hhfr/pkg/streamer"
	"github.com/hhfr/hhfr/pkg/streamer/udp"
)

// unanswered is a transport whose datagrams arrive nowhere, as behind a firewall that drops them.
type unanswered struct{ t *testing.T }

func (u unanswered) Dial(ctx context.Context, _ string) (net.Conn, error) {
	p, err := link.ParseProfile("geo")
	require.NoError(u.t, err)
	near, far, err := link.Packets(nil, p)
	require.NoError(u.t, err)
	context.AfterFunc(u.t.Context(), func() { _ = far.Close() })
	return udp.Dial(ctx, near, far.LocalAddr(), udp.Config{})
}

func (unanswered) Listen(context.Context, string) (net.Listener, error) { return nil, net.ErrClosed }

// That nobody answers at the address of a stream is known within some seconds, long before the
// time for negotiation is over, and it is told why; the messages go in plain SOAP.
func TestAnAddressThatDoesNotAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, err := responder.NewHandler(http.HandlerFunc(repeat), responder.Config{
			Store: newStore(t), Addresses: map[string]string{"udp": ":1"},
		})
		require.NoError(t, err)
		cfg := session.Config{
			Mode: negotiate.Explicit, HTTPClient: &http.Client{Transport: inProcess{h}}, Store: newStore(t),
			Transports: map[string]streamer.Transport{"udp": unanswered{t}}, Timeout: time.Minute,
		}
		began := time.Now()
		s := dial(t, "http://127.0.0.1/soap", cfg)
		assert.Less(t, time.Since(began), 9*time.Second)
		assert.Contains(t, s.Agreed().Why, "no stream to 127.0.0.1:1 (nobody answered within 8s)")
		say(t, s, "all the same")
		require.NoError(t, s.Close())

		began = time.Now()
		s = dial(t, "http://127.0.0.1/soap", cfg)
		assert.Less(t, time.Since(began), time.Second, "it is remembered")
		say(t, s, "again")
		require.NoError(t, s.Close())

		cfg.Timeout = 3 * time.Second
		cfg.Store = newStore(t)
		s = dial(t, "http://127.0.0.1/soap", cfg)
		assert.Contains(t, s.Agreed().Why, "no stream to 127.0.0.1:1 (not within 3s)")
		require.NoError(t, s.Close())
	})
}

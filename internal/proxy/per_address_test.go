package proxy_test

import (
	"bytes"
	"fmt"
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/http1"
	"github.com/hhfr/hhfr/internal/link"
	"github.com/hhfr/hhfr/internal/principal"
	"github.com/hhfr/hhfr/pkg/clock"
)

// login is a call with fields that are the same in each call of a client, and one that is not.
func login(n int) string {
	const fields = "Content-Type: text/xml\r\nAuthorization: Bearer cGF5LWZvci15b3VyLW93bi1saW5rLW9uY2U\r\n" +
		"User-Agent: camera-poller/4.1\r\n"
	return post(fields,
		fmt.Sprintf("<e:Envelope xmlns:e='http://schemas.xmlsoap.org/soap/envelope/'><e:Body><poll><subscription>"+
			"urn:uuid:5b9f1e0a-7f0e-4b9e-8a55-9f6c3d2a1e01</subscription><n>%d</n></poll></e:Body></e:Envelope>", n))
}

// TestConnectionsOfOneAddressAreOneClients: a client that opens a connection for each call costs
// what one costs that keeps it, and a few bytes; the server still sees a connection for each. What
// a client of another address sends in between has no part in that.
func TestConnectionsOfOneAddressAreOneClients(t *testing.T) {
	const calls = 12
	costs := map[string]float64{}
	for _, tt := range []struct {
		name             string
		kept, perAddress bool
	}{{"kept", true, false}, {"by connection", false, false}, {"by address", false, true}} {
		o := startOrigin(t, "127.0.0.1:0", server(echoReply))
		far := startProxy(t, "127.0.0.1:0", o.url(), nil)
		thin, err := link.Relay(nil, link.Profile{Name: "test", Bandwidth: 10_000_000, RTT: 4 * time.Millisecond})
		require.NoError(t, err)
		t.Cleanup(func() { _ = thin.Close() })
		near := startProxy(t, "127.0.0.1:0", far.url(), func(c *settings) {
			c.Dial = thin.DialContext(new(net.Dialer).DialContext)
			if tt.perAddress {
				c.Clients = principal.ByAddress
			}
		})
		near.linked(t)
		unused := func() {
			require.Eventually(t, func() bool { return near.LanesInUse() == 0 }, patience, time.Millisecond)
		}
		call := func(c *client, n int) {
			c.say(login(n))
			c.hear("</e:Envelope>")
		}
		var octetsOf int64
		c := connect(t, near.url())
		for n := range calls + 4 {
			if n == 4 {
				octetsOf = octets(thin)
			}
			if call(c, n); !tt.kept {
				require.NoError(t, c.Close())
				unused()
				before := octets(thin)
				other := connectFrom(t, netip.MustParseAddr("127.0.0.2"), near.url())
				call(other, -n)
				require.NoError(t, other.Close())
				unused()
				if n >= 4 {
					octetsOf += octets(thin) - before
				}
				c = connect(t, near.url())
			}
		}
		costs[tt.name] = float64(octets(thin)-octetsOf) / calls
		require.NoError(t, c.Close())
		if !tt.kept {
			assert.Equal(t, 2*(calls+4), len(o.received()), "%s: a connection for each call", tt.name)
		}
	}
	t.Log(costs)
	assert.Less(t, costs["by address"], costs["kept"]+20)
	assert.Less(t, costs["by address"], costs["by connection"]/2)
}

// unhurried has all short waits last as long as it takes.
type unhurried struct{ clock.Clock }

func (u unhurried) NewTimer(d time.Duration) clock.Timer {
	return u.Clock.NewTimer(max(d, time.Minute))
}

// TestConnectionsThatFollowAtOnce: a connection goes on with what another one of the client has
// left, also if that is closed only now, by its last reply or by the client.
func TestConnectionsThatFollowAtOnce(t *testing.T) {
	const calls = 5
	for name, isLast := range map[string]bool{"the client closes": false, "the reply is the last": true} {
		t.Run(name, func(t *testing.T) {
			o := startOrigin(t, "127.0.0.1:0", server(func(h *http1.Head, entity []byte) []byte {
				reply := echoReply(h, entity)
				if isLast {
					reply = bytes.Replace(reply, []byte("sErver: x"), []byte("Connection: close"), 1)
				}
				return reply
			}))
			far := startProxy(t, "127.0.0.1:0", o.url(), nil)
			thin, err := link.Relay(nil, link.Profile{Name: "test", Bandwidth: 10_000_000, RTT: 4 * time.Millisecond})
			require.NoError(t, err)
			t.Cleanup(func() { _ = thin.Close() })
			near := startProxy(t, "127.0.0.1:0", far.url(), func(c *settings) {
				c.Dial = thin.DialContext(new(net.Dialer).DialContext)
				c.Clients, c.Clock = principal.ByAddress, unhurried{clock.Real()}
			})
			near.linked(t)
			var before *client
			for n := range calls {
				so := octets(thin)
				c := connect(t, near.url())
				c.say(login(n))
				if before != nil && !isLast {
					time.Sleep(20 * time.Millisecond) // the proxy has the call
					require.NoError(t, before.Close())
				}
				c.hear("</e:Envelope>")
				if before = c; n > 1 { // the second widens the shape
					assert.Less(t, octets(thin)-so, int64(120), "bytes of connection %d", n)
				}
			}
			assert.Len(t, o.received(), calls)
		})
	}
}

package proxy_test

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/http1"
	"github.com/hhfr/hhfr/internal/principal"
	"github.com/hhfr/hhfr/pkg/clock"
)

// elsewhere is a listener whose clients come from 192.0.2.N instead of 127.0.0.N, but for
// 127.0.0.1.
type elsewhere struct{ net.Listener }

func (l elsewhere) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	at := conn.RemoteAddr().(*net.TCPAddr).AddrPort()
	if last := at.Addr().As4()[3]; last != 1 {
		at = netip.AddrPortFrom(netip.AddrFrom4([4]byte{192, 0, 2, last}), at.Port())
	}
	return movedConn{conn, at}, nil
}

type movedConn struct {
	net.Conn
	from netip.AddrPort
}

func (c movedConn) NetConn() net.Conn    { return c.Conn }
func (c movedConn) RemoteAddr() net.Addr { return net.TCPAddrFromAddrPort(c.from) }

// party is one who sends a secret, or a guess at one.
type party struct {
	at     byte   // from 192.0.2.N, for each round another N; 1: loopback
	first  string // the fields of a message that its connection begins with; empty: there is none
	fields string
}

const (
	asSOAP     = "Content-Type: text/xml\r\n"
	withSecret = asSOAP + "Authorization: Basic dmljdGltOnNlY3JldA==\r\n" // victim:secret
	withGuess  = asSOAP + "Authorization: Basic dmljdGltOmd1ZXNzZQ==\r\n" // victim:guesse
	withCookie = "Cookie: id=0123456789abcdef\r\n"
	withNTLM   = asSOAP + "Authorization: NTLM TlRMTVNTUAADAAAAGAAYAEgAAAAYABgAYAAAAA\r\n"
	withDigest = asSOAP + "Authorization: Digest username=\"victim\", response=\"0123456789abcdef\"\r\n"
	byPage     = asSOAP + "Origin: http://page.example\r\n" + withCookie
	fromFirst  = asSOAP + "X-Forwarded-For: 198.51.100.7\r\n"
	fromSecond = asSOAP + "X-Forwarded-For: 198.51.100.8\r\n"
	viaGate    = asSOAP + "Via: 1.1 gate\r\n"
)

// oracles are those who may try to learn what another one sent: the second guesses at what the
// first has sent, or the first at what the second will send. together: over one connection, as by a
// forwarder. tells: a right guess costs less, which docs/security.md says.
var oracles = []struct {
	name          string
	mode          principal.Mode
	first, second party
	together      bool
	tells         bool
}{
	{name: "the same secret at one address", first: party{2, "", withSecret}, second: party{2, "", withSecret},
		tells: true},
	{name: "the same cookie at one address", first: party{2, "", asSOAP + withCookie},
		second: party{2, "", asSOAP + withCookie}, tells: true},
	{name: "devices of an address", mode: principal.ByAddress, first: party{2, "", asSOAP},
		second: party{2, "", asSOAP}, tells: true},
	{name: "devices of an address, forwarded", mode: principal.ByAddress, first: party{2, "", fromFirst},
		second: party{2, "", fromSecond}, tells: true},

	{name: "the same secret, by connection", mode: principal.ByConnection, first: party{2, "", withSecret},
		second: party{2, "", withSecret}},
	{name: "the same secret on loopback", first: party{1, "", withSecret}, second: party{1, "", withSecret}},
	{name: "the same secret at another address", first: party{2, "", withSecret}, second: party{102, "", withSecret}},
	{name: "devices of two addresses", mode: principal.ByAddress, first: party{2, "", asSOAP},
		second: party{102, "", asSOAP}},
	{name: "a wrong password", first: party{2, "", withSecret}, second: party{2, "", withGuess}},
	{name: "a wrong password before", first: party{2, "", withGuess}, second: party{2, "", withSecret}},
	{name: "a wrong password on the same connection", first: party{2, "", withSecret},
		second: party{2, "", withGuess}, together: true},
	{name: "a login in a body", first: party{2, "", asSOAP}, second: party{2, "", asSOAP}},
	{name: "anonymous after a proof", first: party{2, "", withSecret}, second: party{2, "", asSOAP}},
	{name: "anonymous after a proof, on the same connection", first: party{2, "", withSecret},
		second: party{2, "", asSOAP}, together: true},
	{name: "a proof after anonymous", first: party{2, "", asSOAP}, second: party{2, "", withSecret}},
	{name: "Digest", first: party{2, "", withDigest}, second: party{2, "", withDigest}},
	{name: "NTLM", first: party{2, withNTLM, asSOAP}, second: party{2, withNTLM, asSOAP}},
	{name: "NTLM, with a cookie behind", first: party{2, withNTLM, asSOAP + withCookie},
		second: party{2, withNTLM, asSOAP + withCookie}},
	{name: "forwarded", first: party{2, "", fromFirst}, second: party{2, "", fromSecond}},
	{name: "forwarded on the same connection", first: party{2, "", fromFirst}, second: party{2, "", fromSecond},
		together: true},
	{name: "forwarded for the same address", first: party{2, "", fromFirst}, second: party{2, "", fromFirst},
		together: true},
	{name: "forwarded by one who says nothing else", first: party{2, "", viaGate}, second: party{2, "", viaGate},
		together: true},
	{name: "forwarded, with the same secret", first: party{2, "", withSecret + "Via: 1.1 gate\r\n"},
		second: party{2, "", withSecret + "Via: 1.1 gate\r\n"}},
	{name: "a page with the cookie", first: party{2, "", asSOAP + withCookie}, second: party{2, "", byPage}},
	{name: "a page before", first: party{2, "", byPage}, second: party{2, "", asSOAP + withCookie}},
	{name: "a page among devices", mode: principal.ByAddress, first: party{2, "", asSOAP},
		second: party{2, "", byPage}},
	{name: "a page on the same connection", first: party{2, "", asSOAP + "Origin: http://h\r\n" + withCookie},
		second: party{2, "", byPage}, together: true},
	{name: "a page's image", first: party{2, "", asSOAP + withCookie}, second: party{2, "", withCookie}},
}

// By the sizes of what goes over the link nobody confirms a guess at what another one sent, in both
// directions, but who shows the same secret, and devices of a route that says so.
func TestSizesAnswerNoGuess(t *testing.T) {
	for _, tt := range oracles {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			o := newOracle(t, tt.mode, nil)
			var right, wrong [2][]int
			for round := range 9 {
				address := func(p party) netip.Addr {
					if p.at == 1 {
						return netip.MustParseAddr("127.0.0.1")
					}
					return netip.AddrFrom4([4]byte{127, 0, 0, p.at + byte(round)})
				}
				secret := o.word()
				guess := secret
				if round%2 == 1 {
					guess = o.word()
				}
				c := connectFrom(t, address(tt.first), o.near.url())
				o.calls(c, tt.first.first, tt.first.fields, secret)
				second := c
				if !tt.together {
					require.NoError(t, c.Close())
					o.left()
					second = connectFrom(t, address(tt.second), o.near.url())
				}
				cost := o.calls(second, tt.second.first, tt.second.fields, guess)
				require.NoError(t, second.Close())
				o.left()
				for d := range cost {
					switch {
					case round < 3: // the shapes have come
					case round%2 == 0:
						right[d] = append(right[d], cost[d])
					default:
						wrong[d] = append(wrong[d], cost[d])
					}
				}
			}
			for d, direction := range []string{"requests", "replies"} {
				all := slices.Concat(right[d], wrong[d])
				if tt.tells {
					assert.Less(t, slices.Max(right[d])+wordSpread, slices.Min(wrong[d]), "it is seen: %s", direction)
					continue
				}
				assert.LessOrEqual(t, slices.Max(all)-slices.Min(all), wordSpread,
					"%s: right guesses and wrong ones: %v %v", direction, right[d], wrong[d])
			}
		})
	}
}

// oracle is a pair whose link is tapped.
type oracle struct {
	t      *testing.T
	tap    *wiretap
	server *origin
	near   end
	word   func() string
}

func newOracle(t *testing.T, mode principal.Mode, change func(*settings)) *oracle {
	o := &oracle{t: t, tap: &wiretap{}, word: words()}
	o.server = startOrigin(t, "127.0.0.1:0", server(func(h *http1.Head, entity []byte) []byte {
		if isOffer(h) {
			return nil
		}
		last := ""
		if strings.Contains(string(h.Octets)+string(entity), "guess") { // of a browser, which is to connect anew
			last = "Connection: close\r\n"
		}
		return fmt.Appendf(nil, "HTTP/1.1 200 OK\r\nContent-Type: text/xml\r\n%sContent-Length: %d\r\n\r\n%s", last,
			len(entity), entity)
	}))
	far := startProxy(t, "127.0.0.1:0", o.server.url(), nil)
	o.near = startProxy(t, "127.0.0.1:0", far.url(), func(c *settings) {
		c.WrapDialed = func(conn net.Conn) net.Conn { return &tapped{Conn: conn, tap: o.tap} }
		c.Clock = withoutEnds{clock.Real()}
		if c.Listen, c.Clients = (elsewhere{c.Listen}), mode; change != nil {
			change(c)
		}
	})
	o.near.linked(t)
	return o
}

// calls sends a message with the secret twice, behind another one that begins the connection, and
// returns what the first time cost.
func (o *oracle) calls(c *client, begin, fields, secret string) (cost [2]int) {
	if begin != "" {
		o.call(c, begin, "none")
	}
	before := o.tap.seen()
	o.call(c, fields, secret)
	after := o.tap.seen()
	o.call(c, fields, secret)
	return [2]int{after[0] - before[0], after[1] - before[1]}
}

func (o *oracle) call(c *client, fields, secret string) {
	o.t.Helper()
	require.Contains(o.t, o.say(c, fields, envelopeOf(secret)), secret)
}

// envelopeOf is a message with a secret.
func envelopeOf(secret string) string {
	return "<e:Envelope xmlns:e='http://schemas.xmlsoap.org/soap/envelope/'><e:Body><login><password>" + secret +
		"</password></login></e:Body></e:Envelope>"
}

// say sends a message, and returns the reply, which ends as the message does.
func (o *oracle) say(c *client, fields, body string) string {
	o.t.Helper()
	c.say(fmt.Sprintf("POST /service HTTP/1.1\r\nHost: h\r\n%sContent-Length: %d\r\n\r\n%s", fields, len(body), body))
	return c.hear(body[strings.LastIndex(body, "</"):])
}

// left waits until no connection has a lane.
func (o *oracle) left() {
	require.Eventually(o.t, func() bool { return o.near.LanesInUse() == 0 }, patience, time.Millisecond)
}

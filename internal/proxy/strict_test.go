package proxy_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/codec/binary"
	"github.com/hhfr/hhfr/internal/coders"
	"github.com/hhfr/hhfr/internal/http1"
	"github.com/hhfr/hhfr/internal/session"
	"github.com/hhfr/hhfr/pkg/ctxstore"
	"github.com/hhfr/hhfr/pkg/ctxstore/memory"
	"github.com/hhfr/hhfr/pkg/negotiate"
	"github.com/hhfr/hhfr/pkg/streamer"
)

// TestHeadsThatAreSentOn: a far proxy makes its own requests from the messages of endpoints that
// speak hhfr themselves. What HTTP forbids, or leads elsewhere, does not reach the upstream; the
// session continues.
func TestHeadsThatAreSentOn(t *testing.T) {
	o := startOrigin(t, "127.0.0.1:0", server(echoReply))
	far := startProxy(t, "127.0.0.1:0", o.url(), nil)
	store := memory.New(memory.Config{})
	defer func() { _ = store.Close() }()
	s, err := session.Dial(t.Context(), far.url().String(), session.Config{
		Store: store, Coders: coders.OfBook(binary.NewBook(ctxstore.Shapes{Store: store})), RequireHHFR: true,
	})
	require.NoError(t, err)
	defer func() { _ = s.Close() }()
	const field = "X-Number: %d\r\n\r\n"
	sent := 0
	for i, c := range []struct{ head, arrives string }{
		{"POST /service HTTP/1.1\r\n", "POST /service HTTP/1.1\r\n"},
		{"POST @127.0.0.1:1/ HTTP/1.1\r\n", ""},
		{"POST 127.0.0.1:1 HTTP/1.1\r\n", ""},
		{"POST /a b HTTP/1.1\r\n", ""},
		{"POST /a\tb HTTP/1.1\r\n", ""},
		{"POST /a#b HTTP/1.1\r\n", ""},
		{"POST /\xFF HTTP/1.1\r\n", ""},
		{"POST http://127.0.0.1:1/evil HTTP/1.1\r\n", ""},
		{"POST http://evil.example/ HTTP/1.1\r\n", ""},
		{"POST http://me@" + o.url().Host + "/ HTTP/1.1\r\n", ""},
		{"POST https://" + o.url().Host + "/ HTTP/1.1\r\n", ""},
		{"POST * HTTP/1.1\r\n", ""},
		{"CONNECT " + o.url().Host + " HTTP/1.1\r\n", ""},
		{"CONNECT / HTTP/1.1\r\n", ""},
		{"POST / HTTP/1.1\r\nX: a\rHost: evil\r\n", ""},
		{"POST / HTTP/1.1\r\nX: a\x00b\r\n", ""},
		{"POST / HTTP/1.1\r\nX : a\r\n", ""},
		{"POST / HTTP/1.1\r\nX(: a\r\n", ""},
		{"POST http://" + o.url().Host + "/own?q HTTP/1.1\r\n", "POST /own?q HTTP/1.1\r\n"},
		{"POST HTTP://" + far.url().Host + " HTTP/1.1\r\n", "POST / HTTP/1.1\r\n"},
		{"POST http://" + far.url().Host + "?q HTTP/1.1\r\n", "POST /?q HTTP/1.1\r\n"},
		{"OPTIONS * HTTP/1.1\r\n", "OPTIONS * HTTP/1.1\r\n"},
		{"POST /folded HTTP/1.1\r\nX: a\r\n  b\r\n", "POST /folded HTTP/1.1\r\nX: a b\r\n"},
		{"POST /hop HTTP/1.1\r\nUpgrade: h2c\r\nKeep-Alive: 1\r\nTE: trailers\r\n", "POST /hop HTTP/1.1\r\nX-Number: "},
	} {
		reply, err := s.Call(t.Context(), streamer.NewMessage(fmt.Appendf([]byte(c.head), field, i), []byte(envelope)))
		require.NoError(t, err, "%q", c.head)
		_, err = reply.ReadAll(1 << 20)
		require.NoError(t, err)
		h, _, err := http1.ParseHead(reply.Head, 0)
		require.NoError(t, err)
		if c.arrives == "" {
			assert.Equal(t, http.StatusBadRequest, h.Status(), "%q", c.head)
			continue
		}
		assert.Equal(t, http.StatusOK, h.Status(), "%q", c.head)
		sent++
		got := o.received()
		assert.True(t, strings.HasPrefix(got[len(got)-1], c.arrives), "%q became %q", c.head, got[len(got)-1])
		assert.Contains(t, got[len(got)-1], "\r\nHost: "+o.url().Host+"\r\n")
	}
	assert.Len(t, o.received(), sent, "nothing that was refused")
}

// TestOfferOnAConnectionToBeClosed: a client that makes an offer and wants the connection closed
// gets it closed after the answer, and is told so.
func TestOfferOnAConnectionToBeClosed(t *testing.T) {
	o := startOrigin(t, "127.0.0.1:0", server(echoReply))
	far := startProxy(t, "127.0.0.1:0", o.url(), nil)
	offer := newOffer(t)
	for _, c := range []struct {
		version, fields string
		closes          bool
	}{
		{"HTTP/1.1", "", false},
		{"HTTP/1.1", "Connection: x, Close\r\n", true},
		{"HTTP/1.0", "", true},
		{"HTTP/1.0", "Connection: keep-alive\r\n", false},
	} {
		conn := connect(t, far.url())
		r := &requests{conn: conn}
		const request = "POST /service %s\r\nHost: x\r\nContent-Type: text/xml\r\n%sContent-Length: %d\r\n\r\n%s"
		conn.say(fmt.Sprintf(request, c.version, c.fields, len(offer), offer))
		h, body, err := r.reply()
		require.NoError(t, err)
		assert.Contains(t, string(body), "Answer")
		value, _ := h.Get("Connection")
		if c.closes {
			assert.Equal(t, "close", string(value))
			assert.Empty(t, conn.rest())
			continue
		}
		assert.Empty(t, value)
		conn.say(post("", envelope))
		conn.hear(envelope)
	}
}

// newOffer is one as a peer makes it.
func newOffer(t *testing.T) []byte {
	offer, err := (&negotiate.Offer{
		Schemes: []string{negotiate.Scheme}, Representations: []string{negotiate.RepresentationURI("binary")},
		Transports: []string{negotiate.TransportURI("tcp")},
	}).Message(1)
	require.NoError(t, err)
	return offer
}

// TestOfferThatPauses: an offer of which a packet was lost is answered all the same, and not sent
// to the server.
func TestOfferThatPauses(t *testing.T) {
	o := startOrigin(t, "127.0.0.1:0", server(echoReply))
	far := startProxy(t, "127.0.0.1:0", o.url(), func(c *settings) {
		c.Pause, c.Transports = time.Millisecond, map[string]streamer.Transport{}
	})
	offer := newOffer(t)
	conn := connect(t, far.url())
	r := &requests{conn: conn}
	const head = "POST /service HTTP/1.1\r\nHost: x\r\nContent-Type: text/xml\r\nContent-Length: %d\r\n\r\n"
	conn.say(fmt.Sprintf(head, len(offer)) + string(offer[:len(offer)/2]))
	time.Sleep(100 * time.Millisecond) // far more than a pause
	conn.say(string(offer[len(offer)/2:]))
	_, body, err := r.reply()
	require.NoError(t, err)
	assert.Contains(t, string(body), "Answer")
	assert.Empty(t, o.received())
}

package proxy_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/frame"
)

// TestAgreementOfAPair: what a pair says before its first message takes few bytes, both ways.
func TestAgreementOfAPair(t *testing.T) {
	o := startOrigin(t, "127.0.0.1:0", server(echoReply))
	link := &wire{}
	far := startProxy(t, "127.0.0.1:0", o.url(), func(c *settings) { link.Listener, c.Listen = c.Listen, link })
	near := startProxy(t, "127.0.0.1:0", far.url(), nil)
	near.linked(t)
	require.NoError(t, near.Close())
	all := strings.Join(link.all(), "")
	assert.True(t, strings.HasPrefix(all, "OPTIONS /service HTTP/1.1\r\nHost: "+far.url().Host+"\r\n"), "%q", all)
	assert.Less(t, len(all), 2*len("\x07\x07\x00\x00\x000123")+230, "with a close each: %q", all)
}

// TestTheShortFormIsForThoseWhoReadIt: a peer that does not say that it reads the short form of
// hello gets the long one, and only stages that it named.
func TestTheShortFormIsForThoseWhoReadIt(t *testing.T) {
	o := startOrigin(t, "127.0.0.1:0", server(echoReply))
	far := startProxy(t, "127.0.0.1:0", o.url(), nil)
	for field, want := range map[string]frame.Hello{
		"1": {Stages: 7}, "1;7": {Stages: 7}, "1;23": {Stages: 7, Brief: true}, "1;39": {Stages: 39},
		"1;55": {Stages: 39, Brief: true}, "1;4095": {Stages: 39, Brief: true},
	} {
		c := connect(t, far.url())
		c.say(fmt.Sprintf("POST /service HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: hhfr/1\r\n"+
			"HHFR: %s\r\nContent-Length: %d\r\n\r\n%s", field, len(envelope), envelope))
		s, p := follow(t, c, true)
		reply, err := p.Reply(t.Context())
		_, body := read(t, reply, err)
		assert.Equal(t, envelope, body, field)
		assert.Equal(t, want.Brief, s.Hello().Brief, field)
		assert.Equal(t, want.Stages, s.Hello().Stages, field)
		require.NoError(t, s.Close())
	}
}

// TestOffersOfHTTP2: an offer to go on in HTTP/2 is between a client and its near proxy. All else
// of the head arrives, and other offers do.
func TestOffersOfHTTP2(t *testing.T) {
	o := startOrigin(t, "127.0.0.1:0", server(echoReply))
	near, _ := pair(t, o.url(), nil)
	near.linked(t)
	const before, after = "POST /service HTTP/1.1\r\nhOST: a\r\n", "X-b:  2\r\nContent-Length: %d\r\n\r\n%s"
	const asItIs = "as it is"
	const java = "Connection: Upgrade, HTTP2-Settings\r\nHTTP2-Settings: AAEAAEAAAAIAAAAB\r\nUpgrade: h2c\r\n"
	const others = "Upgrade: h2c\r\nConnection:  keep-alive, Upgrade,X \r\nhttp2-settings:\r\n"
	for sent, arrives := range map[string]string{
		java:                                     "",
		"upgrade:h2c\r\nconnection: upgrade\r\n": "",
		others:                                   "Connection:  keep-alive,X \r\n",
		"Upgrade: h2c, raw\r\nConnection: Upgrade\r\n":                asItIs,
		"Upgrade: h2\r\nConnection: Upgrade\r\nHTTP2-Settings: a\r\n": asItIs,
		"HTTP2-Settings: a\r\nConnection: HTTP2-Settings\r\n":         asItIs,
	} {
		if arrives == asItIs {
			arrives = sent
		}
		rest := fmt.Sprintf(after, len(envelope), envelope)
		c := connect(t, near.url())
		c.say(before + sent + rest)
		c.hear(envelope)
		all := o.received()
		assert.Equal(t, before+arrives+rest, all[len(all)-1])
	}
}

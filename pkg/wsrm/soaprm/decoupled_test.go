package soaprm_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/pkg/soap"
	"github.com/hhfr/hhfr/pkg/soap/addressing"
	"github.com/hhfr/hhfr/pkg/wsrm/header"
	"github.com/hhfr/hhfr/pkg/wsrm/soaprm"
)

// callers is where requests of tests come from, as net/http/httptest has it, with a port.
const callers = "http://192.0.2.1:7777"

// way is how replies come that do not come on connections.
type way struct {
	name string
	open func(*ends, pairing) *soaprm.SequenceSource
}

var ways = []way{
	{"callback", func(e *ends, p pairing) *soaprm.SequenceSource {
		cfg := e.sourceConfig(p.version, p.space, p.soap)
		cfg.Callback = soaprm.NewCallback(callers)
		e.back.mu.Lock()
		e.back.handler = cfg.Callback
		e.back.mu.Unlock()
		s, err := soaprm.OpenSource(context.Background(), cfg)
		require.NoError(e.t, err)
		return s
	}},
	{"poll", func(e *ends, p pairing) *soaprm.SequenceSource {
		cfg := e.sourceConfig(p.version, p.space, p.soap)
		cfg.Poll = time.Second
		s, err := soaprm.OpenSource(context.Background(), cfg)
		require.NoError(e.t, err)
		return s
	}},
}

func eachWay(t *testing.T, do func(*testing.T, way, pairing, uint64)) {
	for i, p := range pairings {
		for _, w := range ways {
			if w.name == "poll" && p.version == soaprm.V10 {
				continue
			}
			t.Run(fmt.Sprint(w.name, " ", p.version, " ", p.soap, " ", i), func(t *testing.T) {
				t.Parallel()
				do(t, w, p, uint64(i))
			})
		}
	}
}

// Over links that lose every third request and every third answer in both directions, replies and
// acknowledgements come to the callback, or to who polls, and nothing of them on the connections of
// requests: each message has its effect once, in order, and gets its own reply.
func TestDecoupledExactlyOnceInOrder(t *testing.T) {
	eachWay(t, func(t *testing.T, w way, p pairing, seed uint64) {
		e := newEnds(t, seed, 0.33)
		s := w.open(e, p)
		e.deliversInOrder(s, p.soap)
		e.link.mu.Lock()
		defer e.link.mu.Unlock()
		for _, octets := range e.link.answers {
			// A request that the end overtook is refused on its connection.
			if w.name == "callback" && !strings.Contains(string(octets), ":SequenceTerminated<") {
				assert.Empty(t, string(octets))
			}
		}
	})
}

// Both ends restart in the middle, again and again; the callback stays where it was.
func TestDecoupledRestarts(t *testing.T) {
	eachWay(t, func(t *testing.T, w way, p pairing, seed uint64) {
		e := newEnds(t, seed, 0.2)
		const n = 40
		for k := 0; k < n; {
			s := w.open(e, p)
			var last *soaprm.SentMessage
			for range 10 {
				sent, err := s.Send(t.Context(), soaprm.OutgoingEnvelope{Envelope: entry(p.soap, k), Action: "urn:add"})
				require.NoError(t, err)
				last = sent
				k++
			}
			if k%20 == 0 {
				_, err := last.Reply(t.Context())
				require.NoError(t, err)
			}
			require.NoError(t, s.Close())
			e.restart()
		}
		s := w.open(e, p)
		require.NoError(t, s.Finish(t.Context()))
		require.NoError(t, s.Close())
		assert.Equal(t, numbers(n), e.entries())
	})
}

// A destination sends replies that nobody acknowledged yet after a restart, without being asked.
func TestDecoupledReplyAfterRestart(t *testing.T) {
	eachPairing(t, func(t *testing.T, k *talk) {
		place := callers + "/replies"
		k.createAt(place)
		status, answer, _ := k.post(k.messageFor(place, 1))
		assert.Equal(t, http.StatusAccepted, status)
		assert.Nil(t, answer)
		got := make(chan string, 64)
		k.back.mu.Lock()
		k.back.handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { got <- r.URL.Path })
		k.back.mu.Unlock()
		k.restart()
		select {
		case path := <-got:
			assert.Equal(t, "/replies", path)
		case <-time.After(deadline):
			t.Fatal("no reply came")
		}
		last := string(k.lastBack())
		assert.Contains(t, last, offered)
		assert.Contains(t, last, `Upper="1"`)
		assert.Equal(t, []string{"1"}, k.calls)
		ack := header.Acknowledgement{Sequence: offered, Ranges: [][2]uint64{{1, 1}}}
		k.post(k.make("urn:x", "", header.Blocks{Acknowledgements: []header.Acknowledgement{ack}}))
	})
}

func (e *ends) lastBack() []byte {
	e.back.mu.Lock()
	defer e.back.mu.Unlock()
	return e.back.seen[len(e.back.seen)-1]
}

// createAt creates a sequence whose acknowledgements go to a place.
func (k *talk) createAt(place string) {
	created := make(chan struct{}, 64)
	k.back.mu.Lock()
	k.back.handler = http.HandlerFunc(func(http.ResponseWriter, *http.Request) { created <- struct{}{} })
	k.back.mu.Unlock()
	status, answer, _ := k.post(k.to(place, k.make(k.version.Namespace()+"/CreateSequence", "", header.Blocks{
		Control: "CreateSequence", Terms: &header.Terms{AcksTo: place,
			Offer: &header.OfferedSequence{Sequence: offered, Endpoint: place}}})))
	require.Equal(k.t, http.StatusAccepted, status)
	require.Nil(k.t, answer)
	<-created
	parsed, err := soap.Parse(k.lastBack(), soap.Limits{})
	require.NoError(k.t, err)
	b := header.Parse(parsed)
	require.Equal(k.t, "CreateSequenceResponse", b.Control)
	k.id = b.Sequence
}

func (k *talk) messageFor(place string, n uint64) []byte { return k.to(place, k.message(n)) }

// to has the answers to a message go to a place.
func (k *talk) to(place string, message []byte) []byte {
	a, err := soap.Split(message, soap.Limits{})
	require.NoError(k.t, err)
	p := addressing.Properties{Space: k.space(), ReplyTo: &addressing.Reference{Address: place}}
	out, err := a.Rewrite(nil, p.Blocks())
	require.NoError(k.t, err)
	return out
}

// A destination is no relay: nothing is sent to an address that is neither of the host that the
// request comes from nor one that its configuration names, and the client is told so, before
// anything happens.
func TestCallbacksThatAreNotAllowed(t *testing.T) {
	for _, c := range []struct {
		address, from, forwarded string
		allowed                  bool
	}{
		{"http://192.0.2.1:7777/x", "192.0.2.1:1234", "", true},
		{"https://192.0.2.1/x", "192.0.2.1:1234", "", true},
		{"http://192.0.2.1:7777/x", "[::ffff:192.0.2.1]:1234", "", true},
		{"http://[2001:db8::1]:1/", "[2001:db8::1]:1234", "", true},
		{"http://localhost:7777/x", "127.0.0.1:1234", "", true},
		{"http://listed.example/x", "192.0.2.1:1234", "", true},
		{"http://LISTED.example:81/x", "192.0.2.1:1234", "", true},
		{"http://port.example:82/x", "192.0.2.1:1234", "", true},
		{"http://port.example:83/x", "192.0.2.1:1234", "", false},
		{"http://192.0.2.2:7777/x", "192.0.2.1:1234", "", false},
		{"http://localhost:7777/x", "192.0.2.1:1234", "", false},
		{"http://127.0.0.1:7777/x", "192.0.2.1:1234", "", false},
		{"http://127.0.0.1:7777/x", "127.0.0.1:1234", "203.0.113.9", false}, // by a proxy on this machine
		{"http://192.0.2.1:7777@elsewhere.example/", "192.0.2.1:1234", "", false},
		{"http://192.0.2.1.elsewhere.example/", "192.0.2.1:1234", "", false},
		{"http://elsewhere.example/#192.0.2.1", "192.0.2.1:1234", "", false},
		{"http://3221225985/", "192.0.2.1:1234", "", false}, // the same host, in a form that is not read
		{"ftp://192.0.2.1/x", "192.0.2.1:1234", "", false},
		{"file:///etc/passwd", "192.0.2.1:1234", "", false},
		{"mailto:a@192.0.2.1", "192.0.2.1:1234", "", false},
		{"http://192.0.2.1/" + strings.Repeat("x", 4096), "192.0.2.1:1234", "", false},
	} {
		t.Run(c.address[:min(len(c.address), 60)], func(t *testing.T) {
			e := newEnds(t, 1, 0)
			e.cfg.Callbacks = []string{"listed.example", "port.example:82"}
			e.restart()
			k := &talk{ends: e, pairing: pairings[3]}
			k.create()
			send := func(message []byte) *httptest.ResponseRecorder {
				r := httptest.NewRequest(http.MethodPost, where, strings.NewReader(string(message)))
				r.RemoteAddr = c.from
				r.Header.Set("Content-Type", "text/xml")
				if c.forwarded != "" {
					r.Header.Set("X-Forwarded-For", c.forwarded)
				}
				w := httptest.NewRecorder()
				k.link.handler.ServeHTTP(w, r)
				return w
			}
			w := send(k.messageFor(c.address, 1))
			terms := &header.Terms{AcksTo: c.address}
			created := send(k.make(k.version.Namespace()+"/CreateSequence", "",
				header.Blocks{Control: "CreateSequence", Terms: terms}))
			if c.allowed {
				assert.Equal(t, http.StatusAccepted, w.Code, "%s", w.Body)
				assert.Contains(t, created.Body.String(), "CreateSequenceResponse")
				return
			}
			assert.Contains(t, w.Body.String(), "OnlyAnonymousAddressSupported")
			assert.Contains(t, created.Body.String(), "CreateSequenceRefused")
			assert.Contains(t, created.Body.String(), "nothing is sent to that address from here")
			assert.Empty(t, e.calls)
			require.NoError(t, e.served.Close())
			assert.Empty(t, e.back.seen)
		})
	}
}

// A sequence of the store keeps the place of its replies: the service was told of it. Another one
// is refused, with the place, and the right one goes on.
func TestTheCallbackStays(t *testing.T) {
	e := newEnds(t, 1, 0)
	s := ways[0].open(e, pairings[0])
	require.NoError(t, s.Close())
	for _, change := range []func(*soaprm.SourceConfig){
		func(*soaprm.SourceConfig) {},
		func(c *soaprm.SourceConfig) { c.Callback = soaprm.NewCallback("http://192.0.2.1:7778") },
	} {
		cfg := e.sourceConfig(pairings[0].version, "", soap.V11)
		change(&cfg)
		_, err := soaprm.OpenSource(t.Context(), cfg)
		require.ErrorIs(t, err, &soaprm.Error{Code: soaprm.BadConfig})
		assert.ErrorContains(t, err, "whose replies come at http://192.0.2.1:7777/")
	}
	s = ways[0].open(e, pairings[0])
	sent, err := s.Send(t.Context(), soaprm.OutgoingEnvelope{Envelope: entry(soap.V11, 0), Action: "urn:add"})
	require.NoError(t, err)
	_, err = sent.Reply(t.Context())
	require.NoError(t, err)
	require.NoError(t, s.Finish(t.Context()))
	require.NoError(t, s.Close())

	s = ways[1].open(e, pairings[2])
	require.NoError(t, s.Close())
	cfg := e.sourceConfig(soaprm.V11, "", soap.V11)
	cfg.Callback = soaprm.NewCallback(callers)
	_, err = soaprm.OpenSource(t.Context(), cfg)
	assert.ErrorContains(t, err, "whose replies come by polling")
}

// Who does not know the path of a sequence can send nothing to a callback; what is about another
// sequence, or acknowledges what was never sent, is a fault, and nothing is believed.
func TestWhatACallbackRefuses(t *testing.T) {
	eachPairing(t, func(t *testing.T, k *talk) {
		s := ways[0].open(k.ends, k.pairing)
		defer func() { require.NoError(t, s.Close()) }()
		callback := k.back.handler
		p := k.callbackOf()
		send := func(path string, message []byte) *httptest.ResponseRecorder {
			r := httptest.NewRequest(http.MethodPost, path, strings.NewReader(string(message)))
			r.Header.Set("Content-Type", "text/xml")
			w := httptest.NewRecorder()
			callback.ServeHTTP(w, r)
			return w
		}
		k.id = "urn:uuid:00000000-0000-4000-8000-000000000000"
		assert.Equal(t, http.StatusNotFound, send("/other", k.message(1)).Code)
		assert.Contains(t, send(p, k.message(1)).Body.String(), "UnknownSequence")
		ack := func(id string, upper uint64) []byte {
			return k.make(k.version.Namespace()+"/SequenceAcknowledgement", "", header.Blocks{
				Acknowledgements: []header.Acknowledgement{{Sequence: id, Ranges: [][2]uint64{{1, upper}}}}})
		}
		assert.Contains(t, send(p, ack(k.id, 1)).Body.String(), "UnknownSequence")
		assert.Contains(t, send(p, ack(s.Status().Identifier, 1)).Body.String(), "InvalidAcknowledgement")
		backwards := replaced(ack(s.Status().Identifier, 1), `Lower="1"`, `Lower="2"`)
		assert.Contains(t, send(p, backwards).Body.String(), "InvalidAcknowledgement")
		asks := k.make("urn:x", "", header.Blocks{AckRequested: []string{k.id}})
		assert.Contains(t, send(p, asks).Body.String(), "UnknownSequence")
		unknown := strings.Replace(string(k.make("urn:x", "<x/>", header.Blocks{})), "</soap:Header>",
			`<x xmlns="urn:x" soap:mustUnderstand="1"/></soap:Header>`, 1)
		assert.Contains(t, send(p, []byte(unknown)).Body.String(), "MustUnderstand")
		assert.Equal(t, http.StatusUnsupportedMediaType, send(p, []byte("hello")).Code)
		assert.Zero(t, s.Status().Done)
		assert.Zero(t, s.Status().Received)
	})
}

// callbackOf finds the path of a source in what it sent.
func (k *talk) callbackOf() string {
	k.link.mu.Lock()
	defer k.link.mu.Unlock()
	_, after, ok := strings.Cut(string(k.link.seen[0]), callers)
	require.True(k.t, ok)
	path, _, _ := strings.Cut(after, "<")
	return path
}

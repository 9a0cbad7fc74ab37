package soaprm_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/pkg/clock"
	"github.com/hhfr/hhfr/pkg/ctxstore"
	"github.com/hhfr/hhfr/pkg/ctxstore/memory"
	"github.com/hhfr/hhfr/pkg/soap"
	"github.com/hhfr/hhfr/pkg/soap/addressing"
	"github.com/hhfr/hhfr/pkg/wsrm"
	"github.com/hhfr/hhfr/pkg/wsrm/soaprm"
)

const where = "http://svc.example/book"

// deadline is how long something may take that happens soon, looked for every tick.
const deadline, tick = 20 * time.Second, time.Millisecond

// link is a transport that loses requests and replies, and counts what goes over it.
type link struct {
	handler http.Handler
	mu      sync.Mutex
	random  *rand.Rand
	lose    float64 // of requests, and of replies
	seen    [][]byte
	answers [][]byte
}

var errLost = errors.New("lost on the link")

func (l *link) roll() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.random.Float64() < l.lose
}

func (l *link) RoundTrip(r *http.Request) (*http.Response, error) {
	octets, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	l.seen = append(l.seen, octets)
	handler := l.handler
	l.mu.Unlock()
	if l.roll() {
		return nil, errLost
	}
	request := httptest.NewRequest(r.Method, r.URL.String(), bytes.NewReader(octets)).WithContext(r.Context())
	request.Header = r.Header.Clone()
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, request)
	l.mu.Lock()
	l.answers = append(l.answers, w.Body.Bytes())
	l.mu.Unlock()
	if l.roll() {
		return nil, errLost
	}
	return w.Result(), nil
}

// ends is an endpoint with a book in front of which it stands, and what a source needs to reach it.
type ends struct {
	t      testing.TB
	store  ctxstore.Store
	link   *link
	back   *link // to where replies go that do not go on connections
	served *soaprm.SequenceDestination
	clock  clock.Clock
	cfg    soaprm.DestinationConfig
	mine   ctxstore.Store // of the source
	within bool           // the book is kept in transactions
	calls  []string       // of the service
	mu     sync.Mutex
}

func newEnds(t testing.TB, seed uint64, lose float64) *ends {
	e := &ends{t: t, store: memory.New(memory.Config{}), mine: memory.New(memory.Config{}), within: true,
		clock: clock.Scaled(200),
		link:  &link{random: rand.New(rand.NewPCG(seed, 1)), lose: lose},
		back:  &link{random: rand.New(rand.NewPCG(seed, 2)), lose: lose, handler: http.NotFoundHandler()}}
	e.restart()
	t.Cleanup(func() { require.NoError(t, e.served.Close()) })
	return e
}

// restart makes a new endpoint of what the store has.
func (e *ends) restart() {
	cfg := e.cfg
	cfg.Store, cfg.Clock = e.store, e.clock
	cfg.Client = &http.Client{Transport: e.back}
	if e.served != nil {
		require.NoError(e.t, e.served.Close())
	}
	cfg.Transactional = func(string) bool { return e.within }
	endpoint, err := soaprm.NewDestination(context.Background(), http.HandlerFunc(e.book), cfg)
	require.NoError(e.t, err)
	e.served = endpoint
	e.link.mu.Lock()
	defer e.link.mu.Unlock()
	e.link.handler = endpoint
}

// book appends what it gets to its effect, and replies with the number of entries.
func (e *ends) book(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	parsed, err := soap.Parse(body, soap.Limits{MaxBytes: 64 << 20})
	if err != nil || len(parsed.Header) > 0 {
		http.Error(w, fmt.Sprint(err, parsed), http.StatusTeapot)
		return
	}
	id := parsed.Body[0].Text
	e.mu.Lock()
	e.calls = append(e.calls, id)
	e.mu.Unlock()
	tx, _ := soaprm.TxOf(r.Context())
	count := 0
	if tx != nil {
		tx.Set(append(bytes.Clone(tx.Value()), id+"\n"...))
		count = bytes.Count(tx.Value(), []byte{'\n'})
	}
	if parsed.Body[0].Name.Local == "oneway" {
		w.WriteHeader(http.StatusAccepted)
		return
	}
	w.Header().Set("Content-Type", "text/xml; charset=utf-8")
	fmt.Fprintf(w, `<s:Envelope xmlns:s="%s"><s:Body><count>%d</count><of>%s</of></s:Body></s:Envelope>`,
		parsed.Version.Namespace(), count, id)
}

// entries are those of the book, of all sequences in the order of their names.
func (e *ends) entries() (list []string) {
	for info, err := range e.store.List(context.Background(), ctxstore.SequencePrefix) {
		require.NoError(e.t, err)
		entry, err := e.store.Get(context.Background(), info.URI)
		require.NoError(e.t, err)
		effect, err := wsrm.EffectOf(entry.Value)
		require.NoError(e.t, err)
		list = append(list, strings.Fields(string(effect))...)
	}
	return list
}

func (e *ends) source(version soaprm.Protocol, space string, v soap.Version) *soaprm.SequenceSource {
	s, err := soaprm.OpenSource(context.Background(), e.sourceConfig(version, space, v))
	require.NoError(e.t, err)
	return s
}

func (e *ends) sourceConfig(version soaprm.Protocol, space string, v soap.Version) soaprm.SourceConfig {
	return soaprm.SourceConfig{
		URL: where, Version: version, Addressing: space, SOAP: v, Store: e.mine, Clock: e.clock,
		Client: &http.Client{Transport: e.link}, GiveUp: 24 * time.Hour, MaxResend: 8 * time.Second,
	}
}

func entry(v soap.Version, n int) []byte {
	return []byte(`<s:Envelope xmlns:s="` + v.Namespace() + `"><s:Body><add>` + strconv.Itoa(n) +
		`</add></s:Body></s:Envelope>`)
}

func numbers(n int) (list []string) {
	for i := range n {
		list = append(list, strconv.Itoa(i))
	}
	return list
}

type pairing struct {
	version soaprm.Protocol
	space   string
	soap    soap.Version
}

var pairings = []pairing{
	{soaprm.V10, addressing.V200408, soap.V11}, {soaprm.V10, addressing.V200508, soap.V11},
	{soaprm.V11, addressing.V200508, soap.V11}, {soaprm.V11, addressing.V200508, soap.V12},
	{soaprm.V11, addressing.V200408, soap.V12}, {soaprm.V10, addressing.V200408, soap.V12},
}

// deliversInOrder sends messages, many at once: each has its effect once, in order, and gets its
// own reply. It ends the source, of which nothing is left.
func (e *ends) deliversInOrder(s *soaprm.SequenceSource, v soap.Version) {
	t := e.t
	const n = 20
	var all []*soaprm.SentMessage
	for k := range n {
		sent, err := s.Send(t.Context(), soaprm.OutgoingEnvelope{Envelope: entry(v, k), Action: "urn:add"})
		require.NoError(t, err)
		all = append(all, sent)
	}
	for k, sent := range all {
		reply, err := sent.Reply(t.Context())
		require.NoError(t, err)
		assert.Contains(t, string(reply.Envelope), fmt.Sprintf("<of>%d</of>", k))
		assert.NotContains(t, string(reply.Envelope), "Sequence")
		assert.NotContains(t, string(reply.Envelope), "MessagePending")
	}
	require.NoError(t, s.Finish(t.Context()))
	require.NoError(t, s.Close())
	assert.Equal(t, numbers(n), e.entries())
	assert.Equal(t, numbers(n), e.calls)
	for info, err := range e.mine.List(t.Context(), "") {
		require.NoError(t, err)
		assert.Fail(t, "left", info.URI)
	}
}

// Over a link that loses every third request and every third reply, each message has its effect
// once, in order, and gets its own reply; many are under way at once.
func TestExactlyOnceInOrder(t *testing.T) {
	for i, p := range pairings {
		t.Run(fmt.Sprint(p.version, " ", p.soap, " ", i), func(t *testing.T) {
			t.Parallel()
			e := newEnds(t, uint64(i), 0.33)
			s := e.source(p.version, p.space, p.soap)
			e.deliversInOrder(s, p.soap)
			assert.Positive(t, s.Status().Resent)
		})
	}
}

// Both ends restart in the middle, again and again, from what their stores have.
func TestRestarts(t *testing.T) {
	for i, p := range pairings {
		t.Run(fmt.Sprint(p.version, " ", p.soap, " ", i), func(t *testing.T) {
			t.Parallel()
			e := newEnds(t, uint64(i), 0.2)
			const n = 40
			for k := 0; k < n; {
				s := e.source(p.version, p.space, p.soap)
				var last *soaprm.SentMessage
				for range 10 {
					sent, err := s.Send(t.Context(), soaprm.OutgoingEnvelope{Envelope: entry(p.soap, k),
						Action: "urn:add"})
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
			s := e.source(p.version, p.space, p.soap)
			require.NoError(t, s.Finish(t.Context()))
			require.NoError(t, s.Close())
			assert.Equal(t, numbers(n), e.entries())
		})
	}
}

// A service that fails before its transaction is stored is called again when the message comes
// again; a message is in the store before Send returns, and the endpoint may be away meanwhile.
func TestTheServiceIsAway(t *testing.T) {
	e := newEnds(t, 1, 0)
	s := e.source(soaprm.V11, "", soap.V12)
	e.link.mu.Lock()
	e.link.handler = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "away", http.StatusBadGateway)
	})
	e.link.mu.Unlock()
	sent, err := s.Send(t.Context(), soaprm.OutgoingEnvelope{Envelope: entry(soap.V12, 0), Action: "urn:add"})
	require.NoError(t, err)
	require.NoError(t, s.Close())
	_, err = sent.Reply(t.Context())
	assert.ErrorIs(t, err, &soaprm.Error{Code: soaprm.Unanswered})
	assert.Empty(t, e.entries())
	e.restart()
	s = e.source(soaprm.V11, "", soap.V12)
	require.NoError(t, s.Finish(t.Context()))
	require.NoError(t, s.Close())
	assert.Equal(t, numbers(1), e.entries())
}

// One-way messages are done when they are acknowledged.
func TestOneWay(t *testing.T) {
	e := newEnds(t, 3, 0.3)
	s := e.source(soaprm.V11, "", soap.V11)
	for k := range 20 {
		m := bytes.ReplaceAll(entry(soap.V11, k), []byte("add>"), []byte("oneway>"))
		_, err := s.Send(t.Context(), soaprm.OutgoingEnvelope{Envelope: m, Action: "urn:add", OneWay: true})
		require.NoError(t, err)
	}
	require.NoError(t, s.Finish(t.Context()))
	require.NoError(t, s.Close())
	assert.Equal(t, numbers(20), e.entries())
}

// Replies that no request follows are acknowledged in a message of their own, after a while: the
// endpoint keeps none of them.
func TestFlushTimer(t *testing.T) {
	e := newEnds(t, 3, 0)
	s := e.source(soaprm.V11, "", soap.V12)
	sent, err := s.Send(t.Context(), soaprm.OutgoingEnvelope{Envelope: entry(soap.V12, 0), Action: "urn:add"})
	require.NoError(t, err)
	_, err = sent.Reply(t.Context())
	require.NoError(t, err)
	alone := func() bool {
		e.link.mu.Lock()
		defer e.link.mu.Unlock()
		return bytes.Contains(e.link.seen[len(e.link.seen)-1], []byte("200702/SequenceAcknowledgement</"))
	}
	require.Eventually(t, alone, deadline, tick)
	require.NoError(t, s.Close())
	for _, octets := range e.link.seen { // none of it broke a rule
		require.NotContains(t, string(octets), "Fault")
	}
}

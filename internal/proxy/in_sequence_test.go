package proxy_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
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
	"github.com/hhfr/hhfr/pkg/wsrm/header"
	"github.com/hhfr/hhfr/pkg/wsrm/soaprm"
)

// wanting is an origin that wants every message in a sequence, and some requests of which are lost.
type wanting struct {
	*httptest.Server
	mu    sync.Mutex
	lose  int // every so many requests one is lost; 0: none is
	seen  []sighting
	calls []string // of the service, what it was asked
}

// sighting is a request as it came, lost or not.
type sighting struct {
	body   []byte
	fields http.Header
	host   string
}

func startWanting(t testing.TB, lose int) *wanting {
	t.Helper()
	w := &wanting{lose: lose}
	endpoint, err := soaprm.NewDestination(t.Context(), http.HandlerFunc(w.service),
		soaprm.DestinationConfig{Store: memory.New(memory.Config{}), Required: true})
	require.NoError(t, err)
	w.Server = httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		octets, _ := io.ReadAll(r.Body)
		w.mu.Lock()
		w.seen = append(w.seen, sighting{octets, r.Header.Clone(), r.Host})
		lost := w.lose > 0 && len(w.seen)%w.lose == 0
		w.mu.Unlock()
		switch {
		case lost:
			panic(http.ErrAbortHandler)
		case r.URL.Path == "/closed" && r.Header.Get("Authorization") == "":
			out.Header().Set("WWW-Authenticate", `Basic realm="x"`)
			http.Error(out, "who are you?", http.StatusUnauthorized)
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(octets))
		endpoint.ServeHTTP(out, r)
	}))
	t.Cleanup(w.Close)
	return w
}

func (w *wanting) service(out http.ResponseWriter, r *http.Request) {
	octets, _ := io.ReadAll(r.Body)
	if r.Method == http.MethodGet {
		_, _ = io.WriteString(out, "what is no SOAP")
		return
	}
	e, err := soap.Parse(octets, soap.Limits{})
	if err != nil || len(e.Header) > 0 {
		http.Error(out, fmt.Sprint(err, e), http.StatusTeapot)
		return
	}
	w.mu.Lock()
	w.calls = append(w.calls, e.Body[0].Text)
	w.mu.Unlock()
	if e.Body[0].Name.Local == "silent" {
		out.WriteHeader(http.StatusAccepted)
		return
	}
	out.Header().Set("Content-Type", r.Header.Get("Content-Type"))
	_, _ = out.Write(octets)
}

func (w *wanting) url(path string) *url.URL {
	u, _ := url.Parse(w.URL + path)
	return u
}

// sightings are all requests so far; handled is what the service was asked.
func (w *wanting) sightings() []sighting {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.seen)
}

func (w *wanting) handled() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.calls)
}

// sequences are the messages with a number, by sequence in the order of the first, as numbers in
// the order of their coming. No message has more than one Sequence block.
func (w *wanting) sequences(t testing.TB) (order []string, numbers map[string][]uint64) {
	t.Helper()
	numbers = map[string][]uint64{}
	for _, s := range w.sightings() {
		a, err := soap.Split(s.body, soap.Limits{})
		if err != nil {
			continue
		}
		require.NoError(t, atMostOneSequence(&a.Envelope))
		if b := header.Parse(&a.Envelope); b != nil && b.Number > 0 {
			if numbers[b.Sequence] == nil {
				order = append(order, b.Sequence)
			}
			numbers[b.Sequence] = append(numbers[b.Sequence], b.Number)
		}
	}
	return order, numbers
}

func atMostOneSequence(e *soap.Envelope) error {
	n := 0
	for i := range e.Header {
		if e.Header[i].Name.Local == "Sequence" {
			n++
		}
	}
	if n > 1 {
		return fmt.Errorf("%d Sequence blocks on one hop", n)
	}
	return nil
}

// inSequences has a proxy put messages in sequences of a version, on a clock that runs faster.
func inSequences(version soaprm.Protocol, to *url.URL, store ctxstore.Store) func(*settings) {
	return func(c *settings) {
		c.URL, c.Reliable = to, version
		c.Clock = clock.Scaled(5)
		if store != nil {
			c.Store = store
		}
	}
}

func called(v soap.Version, local, text string) string {
	return `<s:Envelope xmlns:s="` + v.Namespace() + `"><s:Body><` + local + ` xmlns="urn:w">` + text + `</` + local +
		`></s:Body></s:Envelope>`
}

// posts sends a message, and returns what is answered.
func posts(t testing.TB, client *http.Client, at *url.URL, v soap.Version, text string, fields ...string) (
	status int, head http.Header, body string,
) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, at.String(), strings.NewReader(text))
	require.NoError(t, err)
	kind, err := soap.ContentType(v, "")
	require.NoError(t, err)
	r.Header.Set("Content-Type", kind)
	for _, f := range fields {
		name, value, _ := strings.Cut(f, ": ")
		r.Header.Set(name, value)
	}
	response, err := client.Do(r)
	require.NoError(t, err)
	octets, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	return response.StatusCode, response.Header, string(octets)
}

func newClient(t testing.TB) *http.Client {
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

// Clients that know no WS-ReliableMessaging, alone before the far proxy and through a pair: the
// origin, which loses every fourth request, has each message once, in the order of each client, in
// a sequence for each principal; replies are as if there were none.
func TestMessagesGoInSequences(t *testing.T) {
	for version, v := range map[soaprm.Protocol]soap.Version{soaprm.V10: soap.V11, soaprm.V11: soap.V12} {
		t.Run(string(version), func(t *testing.T) {
			t.Parallel()
			w := startWanting(t, 4)
			far := startProxy(t, "127.0.0.1:0", nil, inSequences(version, w.url("/service"), nil))
			near := startProxy(t, "127.0.0.1:0", far.url(), nil)
			near.linked(t)
			client := newClient(t)
			var want []string
			for n := range 6 {
				at, who := far.url(), "Cookie: who=a"
				if n%2 == 1 {
					at, who = near.url(), "Authorization: Basic b"
				}
				text := fmt.Sprint("n", n)
				status, _, body := posts(t, client, at, v, called(v, "ask", text), who)
				assert.Equal(t, http.StatusOK, status)
				assert.Equal(t, called(v, "ask", text), strings.Replace(body, "<s:Header></s:Header>", "", 1))
				want = append(want, text)
			}
			assert.Equal(t, want, w.handled())
			order, numbers := w.sequences(t)
			require.Len(t, order, 2, "one for each principal")
			for _, id := range order {
				assert.EqualValues(t, 3, numbers[id][len(numbers[id])-1])
			}
			for _, s := range w.sightings() {
				assert.NotEqual(t, s.fields.Get("Cookie") == "", s.fields.Get("Authorization") == "", "%s", s.body)
			}
			require.NoError(t, near.Close())
			require.NoError(t, far.Close())
			w.mu.Lock()
			defer w.mu.Unlock()
			assert.Contains(t, string(w.seen[len(w.seen)-1].body), "TerminateSequence", "sequences end in order")
		})
	}
}

// A client with WS-Addressing gets a reply that says which message it answers.
func TestAddressedMessagesInSequences(t *testing.T) {
	w := startWanting(t, 0)
	far := startProxy(t, "127.0.0.1:0", nil, inSequences(soaprm.V11, w.url("/"), nil))
	for _, space := range []string{addressing.V200408, addressing.V200508} {
		p := addressing.Properties{Space: space, MessageID: "urn:uuid:mine", Action: "urn:mine",
			ReplyTo: &addressing.Reference{Address: addressing.Anonymous(space)}}
		a, err := soap.Split([]byte(called(soap.V12, "ask", "x")), soap.Limits{})
		require.NoError(t, err)
		octets, err := a.Rewrite(nil, p.Blocks())
		require.NoError(t, err)
		status, _, body := posts(t, newClient(t), far.url(), soap.V12, string(octets))
		assert.Equal(t, http.StatusOK, status, body)
		e, err := soap.Parse([]byte(body), soap.Limits{})
		require.NoError(t, err)
		got, err := addressing.Read(e)
		require.NoError(t, err)
		assert.Equal(t, "urn:uuid:mine", got.RelatesTo)
		assert.Equal(t, space, got.Space)
		assert.NotContains(t, body, "Sequence")
	}
}

// A message with WS-ReliableMessaging of its own passes as it is, byte for byte, beside others of
// the same connection: nothing on the hop has a Sequence block twice.
func TestOwnSequencesPassAsTheyAre(t *testing.T) {
	for _, version := range []soaprm.Protocol{soaprm.V10, soaprm.V11} {
		w := startWanting(t, 0)
		far := startProxy(t, "127.0.0.1:0", nil, inSequences(soaprm.V11, w.url("/"), nil))
		near := startProxy(t, "127.0.0.1:0", far.url(), nil)
		near.linked(t)
		for _, at := range []*url.URL{near.url(), far.url()} {
			client := newClient(t)
			sent := &sentBodies{next: client.Transport}
			source, err := soaprm.OpenSource(t.Context(), soaprm.SourceConfig{URL: at.String(), Version: version,
				Store: memory.New(memory.Config{}), Client: &http.Client{Transport: sent}})
			require.NoError(t, err)
			before := len(w.handled())
			for n := range 3 {
				m, err := source.Send(t.Context(), soaprm.OutgoingEnvelope{
					Envelope: []byte(called(soap.V11, "ask", fmt.Sprint("own", n)))})
				require.NoError(t, err)
				reply, err := m.Reply(t.Context())
				require.NoError(t, err)
				assert.Contains(t, string(reply.Envelope), fmt.Sprint("own", n))
				_, _, body := posts(t, client, at, soap.V11, called(soap.V11, "ask", fmt.Sprint("other", n)))
				assert.Contains(t, body, fmt.Sprint("other", n))
			}
			require.NoError(t, source.Finish(t.Context()))
			require.NoError(t, source.Close())
			assert.Equal(t, []string{"own0", "other0", "own1", "other1", "own2", "other2"}, w.handled()[before:])
			came := map[string]int{}
			for _, s := range w.sightings() {
				came[string(s.body)]++
			}
			for _, body := range sent.all {
				assert.Equal(t, 1, came[body], "as it is, once: %s", body)
			}
			assert.Greater(t, len(sent.all), 4)
		}
		order, _ := w.sequences(t) // which looks for a second Sequence in each message
		assert.Len(t, order, 3, "two clients' own, and one of the proxy")
	}
}

// sentBodies are the bodies of requests.
type sentBodies struct {
	next http.RoundTripper
	mu   sync.Mutex
	all  []string
}

func (s *sentBodies) RoundTrip(r *http.Request) (*http.Response, error) {
	octets, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	s.all = append(s.all, string(octets))
	s.mu.Unlock()
	r = r.Clone(r.Context())
	r.Body = io.NopCloser(bytes.NewReader(octets))
	return s.next.RoundTrip(r)
}

// What is no message for a sequence passes as it is; what has no reply is answered at once, and not
// sent again; what the origin says of credentials reaches the client; a message that is too long
// and an origin without WS-ReliableMessaging are told.
func TestWhatGoesInNoSequence(t *testing.T) {
	w := startWanting(t, 0)
	far := startProxy(t, "127.0.0.1:0", nil, inSequences(soaprm.V11, w.url("/"), nil))
	client := newClient(t)
	response, err := client.Get(far.url().String())
	require.NoError(t, err)
	octets, _ := io.ReadAll(response.Body)
	require.NoError(t, response.Body.Close())
	assert.Equal(t, "what is no SOAP", string(octets))

	status, _, body := posts(t, client, far.url(), soap.V11, called(soap.V11, "silent", "s"))
	assert.Equal(t, http.StatusAccepted, status)
	assert.Empty(t, body)
	status, _, _ = posts(t, client, far.url(), soap.V11, called(soap.V11, "ask", "t"))
	assert.Equal(t, http.StatusOK, status)
	_, numbers := w.sequences(t)
	for _, list := range numbers {
		assert.Equal(t, []uint64{1, 2}, list, "nothing was sent again")
	}

	closed := *far.url()
	closed.Path = "/closed"
	status, head, body := posts(t, client, &closed, soap.V11, called(soap.V11, "ask", "c"))
	assert.Equal(t, http.StatusUnauthorized, status)
	assert.Equal(t, `Basic realm="x"`, head.Get("WWW-Authenticate"))
	assert.Contains(t, body, "who are you?")
	status, _, _ = posts(t, client, &closed, soap.V11, called(soap.V11, "ask", "c"), "Authorization: Basic c")
	assert.Equal(t, http.StatusOK, status)

	status, _, body = posts(t, client, far.url(), soap.V11, called(soap.V11, "ask", strings.Repeat("l", 65<<20)))
	assert.Equal(t, http.StatusRequestEntityTooLarge, status)
	assert.Contains(t, body, "more than 67043328 bytes goes in no sequence")
	assert.Equal(t, []string{"s", "t", "c"}, w.handled())

	plain := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		octets, _ := io.ReadAll(r.Body)
		out.Header().Set("Content-Type", "text/xml")
		_, _ = out.Write(octets)
	}))
	defer plain.Close()
	to, _ := url.Parse(plain.URL)
	other := startProxy(t, "127.0.0.1:0", nil, inSequences(soaprm.V11, to, nil))
	status, _, body = posts(t, client, other.url(), soap.V11, called(soap.V11, "ask", "p"))
	assert.Equal(t, http.StatusInternalServerError, status)
	assert.Contains(t, body, "no sequence at the upstream")
	assert.Contains(t, body, "the request was not sent")
}

// A far proxy that ends while the origin is away leaves what it accepted in its store; the next one
// sends that before the next message.
func TestStoredMessagesGoFirst(t *testing.T) {
	w := startWanting(t, 0)
	store := memory.New(memory.Config{})
	defer func() { _ = store.Close() }()
	first := startProxy(t, "127.0.0.1:0", nil, inSequences(soaprm.V11, w.url("/"), store))
	client := newClient(t)
	status, _, _ := posts(t, client, first.url(), soap.V11, called(soap.V11, "ask", "before"))
	assert.Equal(t, http.StatusOK, status)
	w.mu.Lock()
	w.lose = 1
	came := len(w.seen)
	w.mu.Unlock()
	gone := make(chan error)
	go func() {
		r, err := client.Post(first.url().String(), "text/xml", strings.NewReader(called(soap.V11, "ask", "kept")))
		if err == nil {
			_ = r.Body.Close()
			err = fmt.Errorf("status %d", r.StatusCode)
		}
		gone <- err
	}()
	require.Eventually(t, func() bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		return len(w.seen) > came
	}, patience, 10*time.Millisecond)
	require.NoError(t, first.Close())
	require.Error(t, <-gone, "its fate is unknown")
	w.mu.Lock()
	w.lose = 0
	w.mu.Unlock()
	second := startProxy(t, "127.0.0.1:0", nil, inSequences(soaprm.V11, w.url("/"), store))
	status, _, body := posts(t, client, second.url(), soap.V11, called(soap.V11, "ask", "after"))
	assert.Equal(t, http.StatusOK, status)
	assert.Contains(t, body, "after")
	assert.Equal(t, []string{"before", "kept", "after"}, w.handled())
	order, _ := w.sequences(t)
	assert.Len(t, order, 1, "in the same sequence")
}

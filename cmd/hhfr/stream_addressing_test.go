package main

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Metro 2.4.9 answers a CreateSequence with another WS-Addressing than its own so, with status 500.
const metroWantsAddressing = `<?xml version='1.0' encoding='UTF-8'?>` +
	`<S:Envelope xmlns:S="http://schemas.xmlsoap.org/soap/envelope/"><S:Header>` +
	`<FaultDetail xmlns="http://www.w3.org/2005/08/addressing"><ProblemHeaderQName>` +
	`{http://www.w3.org/2005/08/addressing}Action</ProblemHeaderQName></FaultDetail></S:Header><S:Body>` +
	`<SOAP-ENV:Fault xmlns:SOAP-ENV="http://schemas.xmlsoap.org/soap/envelope/">` +
	`<faultcode xmlns:SOAP-ENV="http://schemas.xmlsoap.org/soap/envelope/" ` +
	`xmlns:wsa="http://www.w3.org/2005/08/addressing">wsa:MessageAddressingHeaderRequired</faultcode>` +
	`<faultstring>A required header representing a Message Addressing Property is not present</faultstring>` +
	`</SOAP-ENV:Fault></S:Body></S:Envelope>`

// particular is a service that takes WS-ReliableMessaging 1.0 with one WS-Addressing, as Metro and
// WCF do with 2005/08, and answers what has another as Metro does.
type particular struct {
	url     string
	policy  string // in its description
	takes   string // namespace of WS-Addressing; a refused message has none of it
	mu      sync.Mutex
	refused atomic.Int64
	lost    atomic.Bool // answers nothing but the creation of sequences
}

func newParticular(t *testing.T, takes, policy string) *particular {
	t.Helper()
	services, stop := servicesHere(t, "--soap-rm", "1.0", "--misbehave", "refuse")
	t.Cleanup(stop)
	to, err := url.Parse(services["ledger"].URL)
	require.NoError(t, err)
	p := &particular{takes: takes, policy: policy}
	proxy := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: to.Scheme, Host: to.Host})
	proxy.ModifyResponse = p.describe
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		inSequence := bytes.Contains(body, []byte("http://schemas.xmlsoap.org/ws/2005/02/rm"))
		p.mu.Lock()
		defer p.mu.Unlock()
		if inSequence && !bytes.Contains(body, []byte(takes)) {
			p.refused.Add(1)
			w.Header().Set("Content-Type", "text/xml; charset=utf-8")
			w.WriteHeader(http.StatusInternalServerError)
			_, _ = io.WriteString(w, metroWantsAddressing)
			return
		}
		if p.lost.Load() && inSequence && !bytes.Contains(body, []byte("CreateSequence<")) {
			panic(http.ErrAbortHandler)
		}
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	p.url = server.URL + to.Path
	return p
}

// describe puts a policy into a description.
func (p *particular) describe(r *http.Response) error {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return err
	}
	body = bytes.ReplaceAll(body, []byte("<rmp:RMAssertion"), []byte(p.policy+"<rmp:RMAssertion"))
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	r.Header.Del("Content-Length")
	return nil
}

const (
	addressing2004  = "http://schemas.xmlsoap.org/ws/2004/08/addressing"
	addressing2005  = "http://www.w3.org/2005/08/addressing"
	usingAddressing = `<wsaw:UsingAddressing xmlns:wsaw="http://www.w3.org/2006/05/addressing/wsdl"/>`
)

// A service that takes WS-ReliableMessaging 1.0 with WS-Addressing 2005/08 alone gets its messages
// without a flag for that: its policy says so, or its refusal, after which the other one is asked
// for, once. What a run left in the store goes on as it began.
func TestStreamFindsTheAddressing(t *testing.T) {
	body := filepath.Join(t.TempDir(), "add.xml")
	text := `<add xmlns="urn:hhfr:peer:1"><id>a</id><amount>1</amount></add>`
	require.NoError(t, os.WriteFile(body, []byte(text), 0o600))
	for _, c := range []struct {
		name, takes, policy string
		flags               []string
		refused             int
	}{
		{"asked for a sequence", addressing2005, "", []string{"--soap-rm", "1.0"}, 1},
		{"named", addressing2005, "", []string{"--soap-rm", "1.0", "--addressing", "2005/08"}, 0},
		{"WSDL Binding of 2006", addressing2005, usingAddressing, []string{"--assurance", "exactly-once"}, 0},
		{"Metadata of 2007", addressing2005, `<m:Addressing xmlns:m="http://www.w3.org/2007/05/addressing/metadata"/>`,
			[]string{"--assurance", "exactly-once"}, 0},
		{"no policy of addressing", addressing2005, "", []string{"--assurance", "exactly-once"}, 1},
		{"2004", addressing2004, `<p:UsingAddressing xmlns:p="` + addressing2004 + `/policy"/>`,
			[]string{"--assurance", "exactly-once"}, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p := newParticular(t, c.takes, c.policy)
			store := "bolt:" + filepath.Join(t.TempDir(), "client.db")
			run := func(more ...string) (int, string, string) {
				return do(t, append(append([]string{"stream", p.url, "--action", "urn:add", "--wrap", "1.1",
					"--store", store, "-o", "xml", "-v", "--reconnect", "1s"}, c.flags...), more...)...)
			}
			code, stdout, stderr := run(body)
			require.Zero(t, code, stderr)
			assert.Contains(t, stdout, "<count>1</count>")
			assert.EqualValues(t, c.refused, p.refused.Load())

			if c.refused == 0 && c.policy != usingAddressing {
				return // the others leave something in the store
			}
			p.lost.Store(true)
			code, _, stderr = run(body)
			require.NotZero(t, code, stderr)
			assert.EqualValues(t, 2*c.refused, p.refused.Load())
			p.lost.Store(false)
			code, stdout, stderr = run()
			require.Zero(t, code, stderr)
			assert.Contains(t, stderr, "1 message accepted before")
			assert.Contains(t, stdout, "<count>1</count>")
			assert.EqualValues(t, 2*c.refused, p.refused.Load(), "a sequence of the store was not looked for")
		})
	}
}

// Where neither WS-Addressing is what a service wants, or the user asked for the wrong one, the
// hint names the flag that the user gave, or may give.
func TestAddressingHints(t *testing.T) {
	body := filepath.Join(t.TempDir(), "add.xml")
	require.NoError(t, os.WriteFile(body, []byte(`<add xmlns="urn:hhfr:peer:1"/>`), 0o600))
	for _, c := range []struct {
		takes   string
		flags   []string
		refused int
		hint    string
	}{
		{addressing2005, []string{"--soap-rm", "1.0", "--addressing", "2004/08"}, 1, "leave --addressing 2004/08 out"},
		{"urn:another", []string{"--soap-rm", "1.0"}, 2, "--addressing"},
		{"urn:another", []string{"--assurance", "exactly-once"}, 1, "--soap-rm VERSION --addressing VERSION"},
	} {
		t.Run(strings.Join(c.flags, " "), func(t *testing.T) {
			p := newParticular(t, c.takes, usingAddressing)
			code, _, stderr := do(t, append([]string{"stream", p.url, body, "--wrap", "1.1", "--action", "urn:add",
				"--store", "bolt:" + filepath.Join(t.TempDir(), "client.db")}, c.flags...)...)
			assert.Equal(t, 3, code)
			assert.EqualValues(t, c.refused, p.refused.Load())
			assert.Contains(t, stderr, "MessageAddressingHeaderRequired")
			_, hint, _ := strings.Cut(stderr, "hint: ")
			assert.Contains(t, hint, c.hint)
			assert.NotContains(t, hint, "leave --soap-rm out")
		})
	}
}

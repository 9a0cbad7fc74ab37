package session_test

import (
	"crypto/tls"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/responder"
	"github.com/hhfr/hhfr/internal/session"
	"github.com/hhfr/hhfr/internal/shared"
	"github.com/hhfr/hhfr/pkg/negotiate"
	"github.com/hhfr/hhfr/pkg/soap"
	"github.com/hhfr/hhfr/pkg/streamer"
	streamtls "github.com/hhfr/hhfr/pkg/streamer/tls"
)

// secureServices is a responder behind https that accepts streams in TLS.
func secureServices(t *testing.T, a *shared.Authority, edit func(*responder.Config)) (url string) {
	t.Helper()
	own := &tls.Config{
		Certificates: []tls.Certificate{a.Issue(time.Hour, "127.0.0.1")},
		ClientCAs:    a.Pool(),
		ClientAuth:   tls.VerifyClientCertIfGiven,
	}
	l, err := streamtls.New(own, nil).Listen(t.Context(), "127.0.0.1:0")
	require.NoError(t, err)
	_, port, err := net.SplitHostPort(l.Addr().String())
	require.NoError(t, err)
	s := startServices(t, func(c *responder.Config) {
		c.Addresses["tls"] = ":" + port
		if edit != nil {
			edit(c)
		}
	})
	done := make(chan error, 1)
	go func() { done <- s.ServeStreams(t.Context(), l) }()
	server := httptest.NewUnstartedServer(s.Handler(http.NotFoundHandler()))
	server.TLS = own
	server.StartTLS()
	t.Cleanup(func() {
		server.Close()
		require.NoError(t, s.Close())
		require.NoError(t, <-done)
	})
	return server.URL
}

// trusting returns a configuration without Transports, whose HTTP client trusts an authority.
func trusting(t *testing.T, a *shared.Authority) session.Config {
	cfg := config(t)
	cfg.HTTPClient.Transport.(*http.Transport).TLSClientConfig = &tls.Config{RootCAs: a.Pool()}
	cfg.Transports = nil
	return cfg
}

// A session negotiated over https has its stream in TLS, and the next one of the dialer resumes;
// cleartext is offered only if that was allowed, and behind TLS.
func TestStreamsInTLS(t *testing.T) {
	a := shared.NewAuthority(t)
	url := secureServices(t, a, nil)
	cfg := trusting(t, a)
	var resumed []bool
	cfg.OnSession = func(f negotiate.Facts, c net.Conn) {
		assert.Equal(t, negotiate.TransportURI("tls"), f.Transport)
		resumed = append(resumed, c.(*tls.Conn).ConnectionState().DidResume)
	}
	for cleartext, offers := range map[bool][]string{
		false: {negotiate.TransportURI("tls")}, true: {negotiate.TransportURI("tls"), negotiate.TransportURI("tcp")},
	} {
		cfg.AllowCleartext, resumed = cleartext, nil
		d, err := session.NewDialer(cfg)
		require.NoError(t, err)
		for range 2 {
			sess, err := d.Dial(t.Context(), url)
			require.NoError(t, err)
			agreed := sess.Agreed()
			require.True(t, agreed.HHFR, agreed.Why)
			assert.Equal(t, offers, agreed.Offer.Transports)
			require.NoError(t, sess.Close())
		}
		assert.Equal(t, []bool{false, true}, resumed)
	}
}

// TLS is not offered for http URLs, where it is not known whose certificate it must be.
func TestNoTLSByHTTP(t *testing.T) {
	s := startServices(t, nil)
	cfg := config(t)
	cfg.Transports = nil
	agreed := dial(t, s.http.URL, cfg).Agreed()
	require.True(t, agreed.HHFR, agreed.Why)
	assert.Equal(t, []string{negotiate.TransportURI("tcp")}, agreed.Offer.Transports)
	cfg.Transports = map[string]streamer.Transport{"tls": streamtls.New(nil, nil)}
	assert.Equal(t, "no transport to offer", dial(t, s.http.URL, cfg).Agreed().Why)
}

// A client that is not admitted gets plain SOAP, and the reason.
func TestAdmit(t *testing.T) {
	a := shared.NewAuthority(t)
	certificate := a.Issue(time.Hour)
	bearer := responder.AdmitBearer([]string{"first-one", "another"})
	for name, tc := range map[string]struct {
		admit  func(*http.Request) error
		fields string
		cert   bool
		why    string
	}{
		"everybody":     {nil, "", false, ""},
		"a certificate": {responder.AdmitCertificate, "", true, ""},
		"no certificate": {responder.AdmitCertificate, "", false,
			"Admission: only clients with a certificate are admitted"},
		"a token":            {bearer, "Bearer another", false, ""},
		"scheme in any case": {bearer, "bearer first-one", false, ""},
		"no token": {bearer, "", false,
			"Admission: only clients with a bearer token that is known here are admitted"},
		"wrong token":         {bearer, "Bearer first-two", false, "bearer token"},
		"empty token":         {bearer, "Bearer ", false, "bearer token"},
		"token by other ways": {bearer, "Basic another", false, "bearer token"},
	} {
		t.Run(name, func(t *testing.T) {
			url := secureServices(t, a, func(c *responder.Config) { c.Admit = tc.admit })
			cfg := trusting(t, a)
			if tc.fields != "" {
				cfg.OfferFields = []soap.Field{{Name: "Authorization", Value: tc.fields}}
			}
			if tc.cert {
				cfg.HTTPClient.Transport.(*http.Transport).TLSClientConfig.Certificates = []tls.Certificate{certificate}
			}
			agreed := dial(t, url, cfg).Agreed()
			assert.Equal(t, tc.why == "", agreed.HHFR)
			assert.Contains(t, agreed.Why, tc.why)
		})
	}
}

// A token is known from its answer until it is used up, whoever asks and however often, and no
// other is.
func TestKnows(t *testing.T) {
	clock := newLater()
	var sess negotiate.SessionID
	var token [16]byte
	s := startServices(t, func(c *responder.Config) { c.Clock = clock })
	ask := func() {
		body, err := (&negotiate.Offer{
			Schemes: []string{negotiate.Scheme}, Representations: []string{negotiate.RepresentationURI("binary")},
			Transports: []string{negotiate.TransportURI("tcp")}, Lifetime: time.Hour,
		}).Message(soap.V11)
		require.NoError(t, err)
		answer, err := negotiate.ParseAnswer([]byte(answered(t, s, "text/xml", string(body))))
		require.NoError(t, err)
		sess, token = answer.Session, answer.Token
	}
	ask()
	for range 3 {
		assert.True(t, s.Knows(t.Context(), sess, token[:]))
		assert.False(t, s.Knows(t.Context(), sess, make([]byte, 16)))
		assert.False(t, s.Knows(t.Context(), sess, nil))
		assert.False(t, s.Knows(t.Context(), negotiate.SessionID{1}, token[:]))
	}
	conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", s.stream.Addr().String())
	require.NoError(t, err)
	stream, err := streamer.Over(t.Context(), conn,
		streamer.Config{Initiator: true, Session: sess, Token: token[:], Representation: 1, Coder: textCoder()})
	require.NoError(t, err)
	assert.False(t, s.Knows(t.Context(), sess, token[:]), "spent")
	require.NoError(t, stream.Close())
	ask()
	clock.forward(2 * time.Hour)
	assert.False(t, s.Knows(t.Context(), sess, token[:]), "too late")
}

// Trouble with a certificate is reported, and nothing is sent to that server: neither an offer nor
// plain SOAP.
func TestTroubleWithCertificates(t *testing.T) {
	a, other := shared.NewAuthority(t), shared.NewAuthority(t)
	good := a.Issue(time.Hour, "127.0.0.1")
	for want, tc := range map[session.Trouble]struct {
		server tls.Certificate
		asks   tls.ClientAuthType
		client []tls.Certificate
	}{
		session.Untrusted: {server: other.Issue(time.Hour, "127.0.0.1")},
		session.OtherHost: {server: a.Issue(time.Hour, "far.example")},
		session.OutOfTime: {server: a.Issue(-time.Hour, "127.0.0.1")},
		session.Wanted:    {server: good, asks: tls.RequireAndVerifyClientCert},
		session.Rejected: {server: good, asks: tls.RequireAndVerifyClientCert,
			client: []tls.Certificate{other.Issue(time.Hour)}},
	} {
		t.Run(want.String(), func(t *testing.T) {
			server := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
				t.Error("a request arrived")
			}))
			server.TLS = &tls.Config{
				Certificates: []tls.Certificate{tc.server},
				ClientCAs:    a.Pool(),
				ClientAuth:   tc.asks,
			}
			server.Config.ErrorLog = log.New(io.Discard, "", 0)
			server.StartTLS()
			defer server.Close()
			cfg := trusting(t, a)
			secure := cfg.HTTPClient.Transport.(*http.Transport).TLSClientConfig
			secure.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
				if len(tc.client) > 0 {
					return &tc.client[0], nil // whoever signed it
				}
				return new(tls.Certificate), nil
			}
			_, err := session.Dial(t.Context(), server.URL, cfg)
			require.ErrorIs(t, err, &negotiate.Error{Code: negotiate.Unreachable})
			assert.Equal(t, want, session.TroubleOf(err), err)
			assert.NotEmpty(t, want.String())
		})
	}
	assert.Zero(t, session.TroubleOf(io.EOF))
}

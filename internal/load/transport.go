package load

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/hhfr/hhfr"
)

// How requests travel: plain SOAP on a new connection for each, as the phones study measured, or
// on connections that stay open, and all over one stream.
const (
	SOAPNew  = "soap-new"
	SOAPKept = "soap-kept"
	Stream   = "stream"
)

// WayNames are all of them.
func WayNames() []string { return []string{SOAPNew, SOAPKept, Stream} }

// exchanger sends requests. Its methods are safe for concurrent use.
type exchanger interface {
	exchange(ctx context.Context, body []byte) (answered, error)
	// traffic is what travelled so far, in bytes.
	traffic() (sent, received int64)
	close()
}

// answered is an answer.
type answered struct {
	status int
	body   []byte
	worked time.Duration // as the service says; below 0: it does not
}

// maxAnswer is how much of an answer is read, in bytes.
const maxAnswer = 64 << 20

// contentType is that of requests that are made here, in SOAP 1.1.
const contentType = "text/xml; charset=utf-8"

// open makes what sends the requests of a row.
func (c *Config) open(ctx context.Context, way string, clients int) (exchanger, error) {
	if way == Stream {
		return newStreamed(ctx, c)
	}
	return newPlain(c, way, clients), nil
}

// plainExchanger sends requests in plain SOAP.
type plainExchanger struct {
	url       string
	transport *http.Transport
	out, in   atomic.Int64
}

// dialer connects to the service in plain SOAP.
func (c *Config) dialer() func(ctx context.Context, network, addr string) (net.Conn, error) {
	if c.Dial != nil {
		return c.Dial
	}
	return new(net.Dialer).DialContext
}

func newPlain(c *Config, way string, clients int) *plainExchanger {
	p, dial := &plainExchanger{url: c.URL}, c.dialer()
	p.transport = &http.Transport{
		DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
			conn, err := dial(ctx, network, addr)
			if err != nil {
				return nil, err
			}
			return &loadConn{conn, p}, nil
		},
		TLSClientConfig: c.TLS, DisableKeepAlives: way == SOAPNew, DisableCompression: true,
		MaxIdleConnsPerHost: clients, ReadBufferSize: 4 << 10,
	}
	return p
}

func (p *plainExchanger) exchange(ctx context.Context, body []byte) (a answered, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, p.url, bytes.NewReader(body))
	if err != nil {
		return a, err
	}
	req.Header["Content-Type"], req.Header["SOAPAction"] = []string{contentType}, []string{`""`}
	resp, err := p.transport.RoundTrip(req)
	if err != nil {
		return a, err
	}
	defer resp.Body.Close()
	a = answered{status: resp.StatusCode, worked: worked(resp.Header)}
	a.body, err = io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	return a, err
}

func (p *plainExchanger) traffic() (sent, received int64) { return p.out.Load(), p.in.Load() }

func (p *plainExchanger) close() { p.transport.CloseIdleConnections() }

// loadConn counts what a connection carries.
type loadConn struct {
	net.Conn
	of *plainExchanger
}

// Read implements [io.Reader].
func (c *loadConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.of.in.Add(int64(n))
	return n, err
}

// Write implements [io.Writer].
func (c *loadConn) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	c.of.out.Add(int64(n))
	return n, err
}

// streamExchanger sends requests over one stream.
type streamExchanger struct {
	client *hhfr.Client
	before hhfr.Counters         // of what does not count
	why    atomic.Pointer[error] // a request went as plain SOAP
}

func newStreamed(ctx context.Context, c *Config) (*streamExchanger, error) {
	s := &streamExchanger{}
	var err error
	s.client, err = hhfr.Dial(ctx, c.URL, &hhfr.Config{
		TLS: c.TLS, Reconnect: c.Timeout, OnPlain: func(why error) { s.why.Store(&why) },
	})
	return s, err
}

func (s *streamExchanger) exchange(ctx context.Context, body []byte) (a answered, err error) {
	reply, err := s.client.Call(ctx, &hhfr.Request{Body: hhfr.Body(body)})
	if err != nil {
		return a, err
	}
	a = answered{status: reply.Status, worked: worked(reply.Header)}
	a.body, err = reply.ReadAll()
	return a, err
}

func (s *streamExchanger) traffic() (sent, received int64) {
	c := s.client.Counters()
	return c.Sent.Wire, c.Received.Wire
}

// asPlain is how many requests went as plain SOAP, and why.
func (s *streamExchanger) asPlain() (n int64, why string) {
	c := s.client.Counters()
	if p := s.why.Load(); p != nil {
		why = ": " + (*p).Error()
	}
	return c.Requests - s.before.Requests - (c.Sent.Messages - s.before.Sent.Messages), why
}

func (s *streamExchanger) close() { _ = s.client.Close() }

// worked is the duration app of Server-Timing (W3C), which is in milliseconds; below 0: there is
// none.
func worked(header http.Header) time.Duration {
	for metric := range strings.SplitSeq(strings.Join(header["Server-Timing"], ","), ",") {
		params := strings.Split(metric, ";")
		i := slices.IndexFunc(params, func(p string) bool { return strings.HasPrefix(strings.TrimSpace(p), "dur=") })
		if strings.TrimSpace(params[0]) != "app" || i < 0 {
			continue
		}
		text := strings.Trim(strings.TrimPrefix(strings.TrimSpace(params[i]), "dur="), `"`)
		if ms, err := strconv.ParseFloat(text, 64); err == nil && ms >= 0 {
			return time.Duration(ms * float64(time.Millisecond))
		}
	}
	return -1
}

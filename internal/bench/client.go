package bench

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"

	"github.com/hhfr/hhfr/internal/session"
	"github.com/hhfr/hhfr/pkg/clock"
	"github.com/hhfr/hhfr/pkg/ctxstore"
	"github.com/hhfr/hhfr/pkg/negotiate"
	"github.com/hhfr/hhfr/pkg/soap"
	"github.com/hhfr/hhfr/pkg/streamer"
)

// nearEnd is the near end of a session, and its knowledge that lasts from one connection to the
// next.
type nearEnd struct {
	trial   *trial
	clock   clock.Clock
	server  *sessionServer
	store   ctxstore.Store
	tickets tls.ClientSessionCache
	zipper  *gzip.Writer // of all messages, which are not sent at once with gzip
}

// talk carries messages over what was opened before the first one.
type talk struct {
	// begin sends a message; reply waits for its reply.
	begin func(ctx context.Context, message []byte) (reply func() ([]byte, error), err error)
	close func()
}

// open opens what messages go over, on lines.
func (c *nearEnd) open(ctx context.Context, l lines) (*talk, error) {
	m := c.trial.manner
	secure := c.server.tls()
	secure.ClientSessionCache = c.tickets
	t := &http.Transport{
		DialContext:       func(ctx context.Context, _, addr string) (net.Conn, error) { return l.connect(ctx, addr) },
		DisableKeepAlives: !m.kept, DisableCompression: true, Protocols: m.protocols(),
		TLSClientConfig: secure,
	}
	if c.trial.peer != nil {
		t.ResponseHeaderTimeout = patience
	}
	switch {
	case m.hhfr():
		return c.openSession(ctx, l, t)
	case m.http2:
		return c.openHTTP2(ctx, t)
	}
	return &talk{close: t.CloseIdleConnections,
		begin: func(ctx context.Context, message []byte) (func() ([]byte, error), error) {
			return func() ([]byte, error) { return c.post(ctx, t, message) }, nil
		}}, nil
}

// openSession opens a session of hhfr.
func (c *nearEnd) openSession(ctx context.Context, l lines, t *http.Transport) (*talk, error) {
	m := c.trial.manner
	h, err := session.Dial(ctx, c.url(), session.Config{
		HTTPClient: &http.Client{Transport: t},
		Transports: map[string]streamer.Transport{c.trial.streams(): l.streams(t.TLSClientConfig)},
		// otherwise it would make an offer before
		Mode: m.mode, Store: c.store, Coders: newKnown(c.store).coders, RequireHHFR: m.mode != negotiate.FirstCall,
		Clock: c.clock, Timeout: c.trial.timeout(),
	})
	if err != nil {
		t.CloseIdleConnections()
		return nil, err
	}
	closing := func() {
		_ = h.Close() // the measurement is complete
		t.CloseIdleConnections()
	}
	return &talk{close: closing, begin: func(ctx context.Context, message []byte) (func() ([]byte, error), error) {
		p, err := h.Begin(ctx, streamer.NewMessage(nil, message))
		if err != nil {
			return nil, err
		}
		return func() ([]byte, error) {
			reply, err := p.Reply(ctx)
			if err != nil {
				return nil, err
			}
			body, err := reply.ReadAll(maxReply)
			if err == nil && h.Stream() == nil {
				err = fmt.Errorf("plain SOAP instead of hhfr: %s", h.Agreed().Why)
			}
			return body, err
		}, nil
	}}, nil
}

// maxReply is far more than any service's reply.
const maxReply = 1 << 24

// openHTTP2 opens a connection for all calls: a transport would open one for each call that begins
// before the first connection is there.
func (c *nearEnd) openHTTP2(ctx context.Context, t *http.Transport) (*talk, error) {
	scheme, _, _ := strings.Cut(c.server.url, ":")
	conn, err := t.NewClientConn(ctx, scheme, c.server.addr)
	if err != nil {
		return nil, err
	}
	type outcome struct {
		body []byte
		err  error
	}
	return &talk{close: func() {
		_ = conn.Close()
	}, begin: func(ctx context.Context, message []byte) (func() ([]byte, error), error) {
		done := make(chan outcome, 1)
		go func() {
			body, err := c.post(ctx, conn, message)
			done <- outcome{body, err}
		}()
		return func() ([]byte, error) {
			o := <-done
			return o.body, o.err
		}, nil
	}}, nil
}

func (c *nearEnd) url() string { return c.server.url + "/" + c.trial.path() }

// post sends a message as plain SOAP.
func (c *nearEnd) post(ctx context.Context, by http.RoundTripper, message []byte) (reply []byte, err error) {
	body := message
	if c.trial.manner.gzip {
		if body, err = c.zip(message); err != nil {
			return nil, err
		}
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url(), bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", "text/xml; charset=utf-8")
	request.Header.Set("SOAPAction", `""`)
	if c.trial.manner.gzip {
		request.Header.Set("Content-Encoding", "gzip")
		request.Header.Set("Accept-Encoding", "gzip")
	}
	response, err := by.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, response.Body.Close()) }()
	if m := c.trial.manner; m.tls && (response.TLS == nil || response.TLS.DidResume != m.resumed) {
		return nil, fmt.Errorf("resumed TLS: not %t, as it should be", m.resumed)
	}
	reply, err = io.ReadAll(response.Body)
	if err != nil || response.Header.Get("Content-Encoding") != "gzip" {
		return reply, err
	}
	unzipped, err := gzip.NewReader(bytes.NewReader(reply))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(unzipped)
}

func (c *nearEnd) zip(message []byte) ([]byte, error) {
	var b bytes.Buffer
	if c.zipper == nil {
		c.zipper = gzip.NewWriter(&b)
	} else {
		c.zipper.Reset(&b)
	}
	_, err := c.zipper.Write(message)
	err = errors.Join(err, c.zipper.Close())
	return b.Bytes(), err
}

// checkReply returns what is wrong with a reply.
func (s *trial) checkReply(message, reply []byte) error {
	good := bytes.Contains(reply, []byte("result"))
	if s.service == "echo" || s.service == FileService {
		good = bytes.Equal(message, reply)
	}
	if !good || soap.Recognize(reply).Fault {
		return fmt.Errorf("not a reply: %.200s", reply)
	}
	return nil
}

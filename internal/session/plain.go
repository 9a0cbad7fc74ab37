package session

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"sync/atomic"

	"github.com/hhfr/hhfr/internal/http1"
	"github.com/hhfr/hhfr/internal/httpmsg"
	"github.com/hhfr/hhfr/pkg/negotiate"
	"github.com/hhfr/hhfr/pkg/streamer"
)

// knownLength is how much of a body of unknown length is read ahead, in octets, to send it with its length: many SOAP servers take no chunks.
const knownLength = 1 << 20

// post sends a request as plain SOAP and gives its reply; the first one asks for a stream.
func (s *Session) post(ctx context.Context, m *streamer.Message) (*streamer.Message, error) {
	resp, reply, err := s.roundTrip(ctx, m)
	if err != nil || reply != nil {
		return reply, err
	}
	return &streamer.Message{Head: headOf(resp), Body: &plainReply{ctx, resp.Body}}, nil
}

// plainReply is the body of a reply. Where it breaks off, the request has no reply, and may have been processed.
type plainReply struct {
	ctx context.Context
	io.ReadCloser
}

// Read implements [io.Reader]. Errors: FateUnknown.
func (r *plainReply) Read(p []byte) (int, error) {
	n, err := r.ReadCloser.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		if r.ctx.Err() != nil {
			err = context.Cause(r.ctx)
		}
		err = &negotiate.Error{Code: negotiate.FateUnknown, At: -1, Err: fmt.Errorf("the reply broke off: %w", err)}
	}
	return n, err
}

// postOneWay sends a message as plain SOAP and wants no reply but that it was taken.
func (s *Session) postOneWay(ctx context.Context, m *streamer.Message) error {
	resp, reply, err := s.roundTrip(ctx, m)
	if err != nil {
		return err
	}
	if reply != nil {
		resp, err = httpmsg.Response(reply, nil)
		if err != nil {
			return err
		}
	}
	defer resp.Body.Close()
	if resp.StatusCode >= 300 {
		return &negotiate.Error{Code: negotiate.Refused, At: -1, Remote: true, Err: fmt.Errorf("HTTP status %s", resp.Status)}
	}
	// A short body is read so that the connection can be used again; what it says does not matter.
	_, _ = io.CopyN(io.Discard, resp.Body, 4<<10)
	return nil
}

// roundTrip sends a request as plain SOAP, whose reply may come by a stream all the same.
func (s *Session) roundTrip(ctx context.Context, m *streamer.Message) (*http.Response, *streamer.Message, error) {
	req, err := s.request(ctx, m)
	if err != nil {
		return nil, nil, err
	}
	if !s.claim() {
		resp, err := s.do(ctx, req)
		return resp, nil, err
	}
	k := &ask{}
	resp, err := s.do(context.WithValue(ctx, askKey{}, k), req)
	s.asked(k, err)
	reply, err := s.firstReply(ctx, k, err)
	return resp, reply, err
}

// do sends a request.
func (s *Session) do(ctx context.Context, req *http.Request) (*http.Response, error) {
	var connected atomic.Bool
	req = req.WithContext(httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { connected.Store(true) }}))
	resp, err := s.client.Do(req)
	if err == nil {
		if err := schemeReply(s.url, resp); err != nil {
			return nil, err
		}
		return resp, nil
	}
	var own *negotiate.Error
	var useless *unusable
	var exchange *streamer.Error // of a stream that TLS selected
	switch {
	case errors.As(err, &own):
		return nil, own
	case errors.As(err, &useless):
		return nil, &negotiate.Error{Code: negotiate.Unsent, At: -1, Err: useless}
	case errors.As(err, &exchange) && exchange.Code == streamer.FateUnknown:
		return nil, &negotiate.Error{Code: negotiate.FateUnknown, At: -1, Err: exchange}
	case errors.As(err, &exchange):
		return nil, exchange
	}
	if wrong := schemeOf(s.url, err); wrong != nil {
		return nil, wrong
	}
	switch {
	case ctx.Err() != nil:
		if err = context.Cause(ctx); !connected.Load() {
			return nil, err
		}
		return nil, &negotiate.Error{Code: negotiate.FateUnknown, At: -1, Err: err}
	}
	if !connected.Load() || TroubleOf(err) != 0 { // a server that wants another certificate hands on nothing
		return nil, &negotiate.Error{Code: negotiate.Unreachable, At: -1, Err: withoutURL(err)}
	}
	return nil, &negotiate.Error{Code: negotiate.FateUnknown, At: -1, Err: withoutURL(err)}
}

// request makes the HTTP request that a message says. Where it says none, the body is closed.
func (s *Session) request(ctx context.Context, m *streamer.Message) (req *http.Request, err error) {
	defer func() {
		if err != nil {
			_ = httpmsg.CloseReader(m.Body)
		}
	}()
	octets := m.Head
	if octets == nil {
		octets = s.implicit.Full
	}
	head, _, err := http1.ParseHead(octets, 0)
	if err != nil {
		return nil, negotiate.AsMalformed(err)
	}
	if head.IsReply() {
		return nil, negotiate.AsMalformed(fmt.Errorf("request with the head %.40q", head.StartLine()))
	}
	// The target stays on this scheme, host and port whatever it says: a session belongs to them.
	target, err := s.url.Parse(string(head.Target()))
	if err != nil {
		return nil, negotiate.AsMalformed(fmt.Errorf("request target: %w", err))
	}
	target.Scheme, target.Host, target.User = s.url.Scheme, s.url.Host, s.url.User
	body, length, err := measure(m.Body)
	if err != nil {
		return nil, err
	}
	req, err = http.NewRequestWithContext(ctx, string(head.Method()), target.String(), body)
	if err != nil {
		return nil, negotiate.AsMalformed(err)
	}
	req.ContentLength = length
	for _, f := range head.Fields() {
		if !httpmsg.IsFraming(f) {
			// Not by Add: it would change the case of names, which devices compare.
			name := string(f.Name)
			req.Header[name] = append(req.Header[name], string(f.Unfolded()))
		}
	}
	http1.NameAgent(req.Header)
	return req, nil
}

// measure finds out how long a body is, by reading ahead if need be; -1 if it is too long for that. One that cannot be read it leaves open.
func measure(body io.Reader) (io.Reader, int64, error) {
	switch b := body.(type) {
	case nil:
		return http.NoBody, 0, nil
	case interface{ Len() int }:
		if b.Len() == 0 {
			_ = httpmsg.CloseReader(body)
			return http.NoBody, 0, nil
		}
		return body, int64(b.Len()), nil
	}
	ahead, err := io.ReadAll(io.LimitReader(body, knownLength))
	if err != nil {
		return nil, 0, err
	}
	if len(ahead) < knownLength {
		_ = httpmsg.CloseReader(body)
		return measure(bytes.NewReader(ahead))
	}
	whole := io.MultiReader(bytes.NewReader(ahead), body)
	if c, ok := body.(io.Closer); ok {
		whole = httpmsg.Peeked{Reader: whole, Closer: c}
	}
	return whole, -1, nil
}

// headOf writes down what net/http still tells of a reply's head: names in its own case, in alphabetical order.
func headOf(resp *http.Response) []byte {
	head, err := http1.AppendStatusLine(nil, resp.Proto, resp.StatusCode, http.StatusText(resp.StatusCode))
	if err != nil {
		head, _ = http1.AppendStatusLine(nil, "HTTP/1.1", resp.StatusCode, "")
	}
	// A field that cannot be written down is left out.
	head, _ = httpmsg.AppendHeader(head, resp.Header, func(error) error { return nil })
	return head
}

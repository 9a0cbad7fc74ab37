package session

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"sync/atomic"

	"github.com/hhfr/hhfr/internal/httpmsg"
	"github.com/hhfr/hhfr/pkg/negotiate"
	"github.com/hhfr/hhfr/pkg/streamer"
)

// post sends a request as plain SOAP and returns its reply; the first one asks for a stream.
func (s *Session) post(ctx context.Context, m *streamer.Message) (*streamer.Message, error) {
	ctx, answered, end := s.calls.begin(ctx)
	resp, reply, err := s.roundTrip(ctx, m)
	answered()
	if err != nil {
		end()
		return nil, err
	}
	if reply == nil {
		reply = &streamer.Message{Head: httpmsg.HeadOf(resp), Body: &plainReply{ctx, resp.Body}}
	}
	body, ok := reply.Body.(io.ReadCloser)
	if !ok { // it has none
		end()
		return reply, nil
	}
	reply.Body = &endingReply{body, end}
	return reply, nil
}

// plainReply is the body of a reply. If it breaks off, the request has no reply, and may have been
// processed.
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

// postOneWay sends a message as plain SOAP and expects only that it was accepted.
func (s *Session) postOneWay(ctx context.Context, m *streamer.Message) error {
	ctx, answered, end := s.calls.begin(ctx)
	defer end()
	resp, reply, err := s.roundTrip(ctx, m)
	answered()
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
		return &negotiate.Error{
			Code:   negotiate.Refused,
			At:     -1,
			Remote: true,
			Err:    fmt.Errorf("HTTP status %s", resp.Status),
		}
	}
	// A short body is read so that the connection can be used again; its content does not matter.
	_, _ = io.CopyN(io.Discard, resp.Body, 4<<10)
	return nil
}

// roundTrip sends a request as plain SOAP. Its reply may come over a stream all the same.
func (s *Session) roundTrip(ctx context.Context, m *streamer.Message) (*http.Response, *streamer.Message, error) {
	req, err := httpmsg.ClientRequest(ctx, m, s.target(), s.implicit)
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
	req = req.WithContext(
		httptrace.WithClientTrace(ctx,
			&httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { connected.Store(true) }}),
	)
	resp, err := s.client.Do(req)
	if err == nil {
		if err := schemeReply(req.URL, resp); err != nil {
			return nil, err
		}
		return resp, nil
	}
	var own *negotiate.Error
	var useless *unusable
	var exchange *streamer.Error // an error of a stream that TLS selected
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
	if wrong := schemeOf(req.URL, err); wrong != nil {
		return nil, wrong
	}
	switch {
	case ctx.Err() != nil:
		if err = context.Cause(ctx); !connected.Load() {
			return nil, err
		}
		return nil, &negotiate.Error{Code: negotiate.FateUnknown, At: -1, Err: err}
	}
	// a server that wants another certificate does not pass the request on
	if !connected.Load() || TroubleOf(err) != 0 {
		return nil, &negotiate.Error{Code: negotiate.Unreachable, At: -1, Err: withoutURL(err)}
	}
	return nil, &negotiate.Error{Code: negotiate.FateUnknown, At: -1, Err: withoutURL(err)}
}

package session

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/hhfr/hhfr/internal/httpmsg"
	"github.com/hhfr/hhfr/pkg/negotiate"
	"github.com/hhfr/hhfr/pkg/streamer"
)

// plainSOAP sends the messages of a session as plain SOAP.
type plainSOAP struct {
	by       *runner
	implicit *httpmsg.DefaultHead
	calls    *plainCalls
}

// post sends a request as plain SOAP and returns its reply; the first one asks for a stream.
func (p *plainSOAP) post(ctx context.Context, m *streamer.Message) (*streamer.Message, error) {
	ctx, answered, end := p.calls.begin(ctx)
	resp, reply, err := p.roundTrip(ctx, m)
	answered()
	if err != nil {
		end()
		return nil, err
	}
	in := context.Context(nil)
	if reply == nil {
		in = ctx
		reply = &streamer.Message{Head: httpmsg.HeadOf(resp), Body: resp.Body}
	}
	body, ok := reply.Body.(io.ReadCloser)
	if !ok { // it has none
		end()
		return reply, nil
	}
	reply.Body = &endingReply{body, end, in}
	return reply, nil
}

// postOneWay sends a message as plain SOAP and expects only that it was accepted.
func (p *plainSOAP) postOneWay(ctx context.Context, m *streamer.Message) error {
	ctx, answered, end := p.calls.begin(ctx)
	defer end()
	resp, reply, err := p.roundTrip(ctx, m)
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
func (p *plainSOAP) roundTrip(ctx context.Context, m *streamer.Message) (*http.Response, *streamer.Message, error) {
	req, err := httpmsg.ClientRequest(ctx, m, p.by.nodes.target(), p.implicit)
	if err != nil {
		return nil, nil, err
	}
	if !p.by.claim() {
		resp, err := p.do(ctx, req)
		return resp, nil, err
	}
	return p.by.ask(ctx, func(ctx context.Context) (*http.Response, error) { return p.do(ctx, req) })
}

// do sends a request.
func (p *plainSOAP) do(ctx context.Context, req *http.Request) (*http.Response, error) {
	tracing, connected := traced(ctx)
	resp, err := p.by.client.Do(req.WithContext(tracing))
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
		return nil, coded(negotiate.Unsent, useless)
	case errors.As(err, &exchange) && exchange.Code == streamer.FateUnknown:
		return nil, coded(negotiate.FateUnknown, exchange)
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
		return nil, coded(negotiate.FateUnknown, err)
	}
	// a server that wants another certificate does not pass the request on
	if !connected.Load() || TroubleOf(err) != 0 {
		return nil, coded(negotiate.Unreachable, withoutURL(err))
	}
	return nil, coded(negotiate.FateUnknown, withoutURL(err))
}

// plainly sends a message as plain SOAP, to the first node that can be reached.
func (p *plainSOAP) plainly(
	ctx context.Context, m streamer.Message, by func(*sessionStream, streamer.Message) error,
) (err error) {
	nodes := p.by.nodes
	for range nodes.urls[1:] {
		node, body := nodes.target(), httpmsg.Keep(m.Body)
		if err = by(nil, streamer.Message{Head: m.Head, Body: body.Reader()}); !isUnreachable(err) {
			body.Release()
			return err
		}
		nodes.leave(node)
		var ok bool
		if m.Body, ok = body.Again(ctx); !ok {
			return err
		}
	}
	return by(nil, m)
}

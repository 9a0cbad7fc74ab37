package httpmsg

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"

	"github.com/hhfr/hhfr/internal/http1"
	"github.com/hhfr/hhfr/pkg/negotiate"
	"github.com/hhfr/hhfr/pkg/streamer"
)

// knownLength is how much of a body of unknown length is read ahead, in bytes, to send it with its
// length: many SOAP servers accept no chunks.
const knownLength = 1 << 20

// ClientRequest turns a message into the request to a server that it stands for, with a length
// where many servers require one. The request stays at the scheme, host and port of base whatever
// the message's head says; without a head it has the default one. Errors: Malformed, that of the
// body, and that of ctx; then the body is closed.
func ClientRequest(
	ctx context.Context, m *streamer.Message, base *url.URL, without *DefaultHead,
) (req *http.Request, err error) {
	defer func() {
		if err != nil {
			_ = CloseReader(m.Body)
		}
	}()
	octets := m.Head
	if octets == nil {
		octets = without.Full
	}
	head, _, err := http1.ParseHead(octets, 0)
	if err != nil {
		return nil, negotiate.AsMalformed(err)
	}
	if head.IsReply() {
		return nil, negotiate.AsMalformed(fmt.Errorf("request with the head %.40q", head.StartLine()))
	}
	target, err := base.Parse(string(head.Target()))
	if err != nil {
		return nil, negotiate.AsMalformed(fmt.Errorf("request target: %w", err))
	}
	target.Scheme, target.Host, target.User = base.Scheme, base.Host, base.User
	body, length, err := measure(ctx, m.Body)
	if err != nil {
		return nil, err
	}
	req, err = http.NewRequestWithContext(ctx, string(head.Method()), target.String(), body)
	if err != nil {
		return nil, negotiate.AsMalformed(err)
	}
	req.ContentLength = length
	for _, f := range head.Fields() {
		if !IsFraming(f) {
			// Add would change the case of names, which devices compare.
			name := string(f.Name)
			req.Header[name] = append(req.Header[name], string(f.Unfolded()))
		}
	}
	http1.NameAgent(req.Header)
	return req, nil
}

// measure finds out how long a body is, by reading ahead if need be; -1 if it is too long for that.
// A body that cannot be read stays open.
func measure(ctx context.Context, body io.Reader) (io.Reader, int64, error) {
	switch b := body.(type) {
	case nil:
		return http.NoBody, 0, nil
	case interface{ Len() int }:
		if b.Len() == 0 {
			_ = CloseReader(body)
			return http.NoBody, 0, nil
		}
		return body, int64(b.Len()), nil
	}
	ahead, err := UntilDone(ctx, func() ([]byte, error) {
		return io.ReadAll(io.LimitReader(body, knownLength))
	})
	if err != nil {
		return nil, 0, err
	}
	if len(ahead) < knownLength {
		_ = CloseReader(body)
		return measure(ctx, bytes.NewReader(ahead))
	}
	whole := io.MultiReader(bytes.NewReader(ahead), body)
	if c, ok := body.(io.Closer); ok {
		whole = Peeked{Reader: whole, Closer: c}
	}
	return whole, -1, nil
}

// UntilDone reads of a body by a function. If ctx ends first, it returns the cause of ctx, and does
// not wait for a Read of the body: the caller closes that, which should end the Read.
func UntilDone(ctx context.Context, read func() ([]byte, error)) ([]byte, error) {
	if ctx.Done() == nil {
		return read()
	}
	type outcome struct {
		data []byte
		err  error
	}
	done := make(chan outcome, 1)
	go func() {
		data, err := read()
		done <- outcome{data, err}
	}()
	select {
	case o := <-done:
		return o.data, o.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// HeadOf returns the head of a reply as far as net/http preserves it: names in the case of
// net/http, in alphabetical order.
func HeadOf(resp *http.Response) []byte {
	head, err := http1.AppendStatusLine(nil, resp.Proto, resp.StatusCode, http.StatusText(resp.StatusCode))
	if err != nil {
		head, _ = http1.AppendStatusLine(nil, "HTTP/1.1", resp.StatusCode, "")
	}
	// A field that cannot be written is left out.
	head, _ = appendHeader(head, resp.Header)
	return head
}

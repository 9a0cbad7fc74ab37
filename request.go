package hhfr

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"sync/atomic"

	"github.com/hhfr/hhfr/internal/http1"
	"github.com/hhfr/hhfr/internal/httpmsg"
	"github.com/hhfr/hhfr/pkg/soap"
	"github.com/hhfr/hhfr/pkg/streamer"
)

// Request is a message to a service.
type Request struct {
	// Action is the SOAP action: the field SOAPAction in SOAP 1.1, a parameter of Content-Type in
	// SOAP 1.2; "": none.
	Action string
	// Header are further HTTP fields; nil: none. Content-Type and SOAPAction take precedence over
	// those made from Action and Body. Fields that concern a connection, such as Host and
	// Content-Length, are left out.
	Header http.Header
	// Body is the envelope; nil: empty. It is read once, and closed if it is an [io.Closer]. A body
	// in memory, or an [io.Seeker], survives a stream that breaks before anything of it is sent.
	// Without a Content-Type, the client waits for its first start tag, to learn the version of
	// SOAP. While there is no stream, it waits for a MiB of it or its end, since many servers need
	// the length.
	Body io.Reader
}

// Body makes text or bytes the Body of a [Request] or [Reply]. It retains bytes without copying
// them.
func Body[B string | []byte](body B) io.ReadCloser { return memory{bytes.NewReader([]byte(body))} }

// memory is a body in memory.
type memory struct{ *bytes.Reader }

// Close implements [io.Closer].
func (memory) Close() error { return nil }

// maxCopied is the longest body in a string that is copied, in bytes.
const maxCopied = 64 << 10

// inMemory returns a body as streams know it to be in memory, if it is.
func inMemory(body io.Reader) io.Reader {
	switch b := body.(type) {
	case memory:
		return b.Reader
	case *strings.Reader:
		if b.Len() <= maxCopied {
			content := make([]byte, b.Len())
			_, _ = io.ReadFull(b, content)
			return bytes.NewReader(content)
		}
	}
	return body
}

// drop closes the body of a request that is not sent.
func (r *Request) drop() {
	if r != nil {
		_ = closeBody(r.Body)
	}
}

// message converts a request to the message that goes to the service at u. ctx and the life of its
// client bound what has to be read for that.
func (r *Request) message(
	ctx, life context.Context, u *url.URL, cfg *Config, made *atomic.Pointer[madeHead],
) (m streamer.Message, _ error) {
	body, version := inMemory(r.Body), soap.V11
	if r.Header.Get("Content-Type") == "" && cfg.Header.Get("Content-Type") == "" {
		var err error
		if body, version, err = recognized(ctx, life, body); err != nil {
			return m, &Error{Code: Unsent, Err: err}
		}
	}
	last := made.Load()
	if last == nil || !last.isOf(r, version, cfg) {
		head, err := r.head(u, cfg, version)
		if err != nil {
			r.drop()
			return m, err
		}
		last = &madeHead{version, r.Action, httpmsg.List(r.Header), httpmsg.List(cfg.Header), head}
		made.Store(last)
	}
	m.Head, m.Body = last.head, body
	return m, nil
}

// madeHead is the head that was made last, and of what: the next request mostly has the same.
type madeHead struct {
	version     soap.Version
	action      string
	own, common httpmsg.Listed
	head        []byte
}

func (h *madeHead) isOf(r *Request, version soap.Version, cfg *Config) bool {
	return h.version == version && h.action == r.Action && h.own.Is(r.Header) && h.common.Is(cfg.Header)
}

// head is the HTTP head of a request; nil if no head says the same.
func (r *Request) head(u *url.URL, cfg *Config, version soap.Version) ([]byte, error) {
	own, err := soap.RequestFields(version, r.Action)
	if err != nil {
		return nil, invalid(fmt.Errorf("action: %w", err))
	}
	req := &http.Request{Method: http.MethodPost, URL: u, Header: http.Header{}}
	for name, values := range r.Header {
		req.Header[name] = values
	}
	cfg.addTo(req.Header)
	for _, f := range own {
		if req.Header.Get(f.Name) == "" {
			req.Header[f.Name] = []string{f.Value}
		}
	}
	head, err := httpmsg.RequestHead(req)
	switch {
	case err != nil:
		return nil, invalid(err)
	case len(head) > http1.DefaultHeadLimit:
		return nil, invalid(fmt.Errorf("an HTTP head of %d bytes, of at most %d", len(head), http1.DefaultHeadLimit))
	}
	return head, nil
}

// recognized returns the version of SOAP of a body, SOAP 1.1 if it is none, and a reader of the
// whole body. The error is that of ctx, or [net.ErrClosed] at the end of life, if that comes before
// as much is there; then the body is closed.
func recognized(ctx, life context.Context, body io.Reader) (io.Reader, soap.Version, error) {
	switch b := inMemory(body).(type) {
	case nil:
		return nil, soap.V11, nil
	case *bytes.Reader:
		return b, versionOf(b), nil
	case io.ReadSeeker:
		if at, err := b.Seek(0, io.SeekCurrent); err == nil {
			start, _ := beginning(b)
			if _, err := b.Seek(at, io.SeekStart); err != nil {
				return failing{err}, soap.V11, nil
			}
			return b, version(start), nil
		}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(life, func() { cancel(net.ErrClosed) })()
	var failed error // of the body, after its beginning
	start, err := httpmsg.UntilDone(ctx, func() (start []byte, _ error) {
		start, failed = beginning(body)
		return start, nil
	})
	if err != nil {
		_ = closeBody(body)
		return nil, soap.V11, err
	}
	return &resumed{start: start, err: failed, rest: body}, version(start), nil
}

func versionOf(b *bytes.Reader) soap.Version {
	var start looked
	again := *b
	_, _ = again.WriteTo(&start)
	return version(start)
}

// looked is the beginning of what was written to it last. It copies nothing.
type looked []byte

// Write implements [io.Writer].
func (l *looked) Write(p []byte) (int, error) {
	*l = p[:min(len(p), maxLooked)]
	return len(p), nil
}

func version(start []byte) soap.Version {
	if v := soap.Recognize(start).Version; v != soap.None {
		return v
	}
	return soap.V11
}

// maxLooked is the length of the start of a body that is searched for the start tag of its
// envelope, in bytes.
const maxLooked = 4 << 10

var startTag = regexp.MustCompile(`<[^?!/<>][^<>]*>|^\s*[^<\s]`)

// beginning reads a body until its version is known: its first start tag, or a sign that it is no
// XML.
func beginning(body io.Reader) (start []byte, err error) {
	start = make([]byte, 0, maxLooked)
	for len(start) < maxLooked && err == nil && !startTag.Match(start) {
		var n int
		n, err = body.Read(start[len(start):maxLooked])
		start = start[:len(start)+n]
	}
	return start, err
}

// resumed is a body whose beginning, and possibly its end, was read already.
type resumed struct {
	start []byte
	err   error
	rest  io.Reader
}

// Read implements [io.Reader].
func (r *resumed) Read(p []byte) (int, error) {
	switch {
	case len(r.start) > 0:
		n := copy(p, r.start)
		r.start = r.start[n:]
		return n, nil
	case r.err != nil:
		return 0, r.err
	}
	return r.rest.Read(p)
}

// Close implements [io.Closer].
func (r *resumed) Close() error { return closeBody(r.rest) }

// failing is a body that cannot be read.
type failing struct{ err error }

// Read implements [io.Reader].
func (f failing) Read([]byte) (int, error) { return 0, f.err }

func closeBody(body io.Reader) error {
	if c, ok := body.(io.Closer); ok {
		return c.Close()
	}
	return nil
}

// parseURL reads the URL of a service.
func parseURL(rawURL string) (*url.URL, error) {
	u, err := url.Parse(rawURL)
	if err != nil {
		var of *url.Error // it has the URL, and possibly a password in it
		if errors.As(err, &of) {
			err = of.Err
		}
		return nil, invalid(fmt.Errorf("URL: %w", err))
	}
	return u, nil
}

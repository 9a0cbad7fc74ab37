package soap

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"

	"github.com/hhfr/hhfr/internal/http1"
)

// Caller posts envelopes to services, each with one request of HTTP. It is for endpoints that make and read small messages; sessions carry
// messages of any kind. The zero value works, and it is safe for concurrent use.
type Caller struct {
	// HTTP sends the requests; nil means [http.DefaultClient]. A redirect that would turn a POST into a GET is not followed.
	HTTP *http.Client
	// Limits bound the answers.
	Limits Limits
}

// Call posts an envelope and gives the answer. Errors are *[Error]: Faulted with the fault, whatever the status it came with; NotSOAP for an
// answer that is no envelope; Unanswered; those of [Build] and [Parse]; or the cause of ctx.
func (c *Caller) Call(ctx context.Context, url, action string, e *Envelope) (*Envelope, error) {
	resp, err := c.post(ctx, url, action, e)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	reply, err := c.read(ctx, resp)
	switch {
	case err != nil:
		return nil, err
	case reply == nil:
		return nil, &Error{Code: NotSOAP, At: -1, Err: fmt.Errorf("HTTP status %s, no envelope", resp.Status)}
	}
	return reply, nil
}

// Send posts a one-way message, and returns when the other end has taken it: with a status below 300, whatever comes with it but a fault. Errors are as with Call.
func (c *Caller) Send(ctx context.Context, url, action string, e *Envelope) error {
	resp, err := c.post(ctx, url, action, e)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	_, err = c.read(ctx, resp)
	if err != nil && resp.StatusCode < 300 && !errors.Is(err, &Error{Code: Faulted}) {
		return nil
	}
	return err
}

func (c *Caller) post(ctx context.Context, url, action string, e *Envelope) (*http.Response, error) {
	body, err := Build(e)
	if err != nil {
		return nil, err
	}
	fields, err := RequestFields(e.Version, action)
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return nil, &Error{Code: BadField, At: -1, Err: err}
	}
	for _, f := range fields {
		req.Header[f.Name] = []string{f.Value}
	}
	http1.NameAgent(req.Header)
	client := http.DefaultClient
	if c.HTTP != nil {
		client = c.HTTP
	}
	stay := *client
	stay.CheckRedirect = func(next *http.Request, via []*http.Request) error {
		if next.Method != http.MethodPost {
			return http.ErrUseLastResponse
		}
		if client.CheckRedirect != nil {
			return client.CheckRedirect(next, via)
		}
		if len(via) >= maxRedirects {
			return http.ErrUseLastResponse
		}
		return nil
	}
	resp, err := stay.Do(req)
	switch {
	case err == nil:
		return resp, nil
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	}
	return nil, &Error{Code: Unanswered, At: -1, Err: withoutURL(err)}
}

// maxRedirects is how many redirects are followed: as many as net/http follows.
const maxRedirects = 10

// withoutURL takes the URL, whose query may be secret, out of an error of an HTTP client.
func withoutURL(err error) error {
	var of *url.Error
	if errors.As(err, &of) {
		return of.Err
	}
	return err
}

// read takes the envelope of an answer; nil if it has no body.
func (c *Caller) read(ctx context.Context, resp *http.Response) (*Envelope, error) {
	limit := c.Limits.withDefaults().MaxBytes
	data, err := io.ReadAll(io.LimitReader(resp.Body, int64(limit)+1))
	if err != nil {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		return nil, &Error{Code: Unanswered, At: int64(len(data)), Err: err}
	}
	if len(data) == 0 && resp.StatusCode < 300 {
		return nil, nil
	}
	media := ParseContentType(resp.Header.Get("Content-Type"))
	e, err := Parse(data, c.Limits)
	switch {
	case err == nil:
	case media.Version() == None || resp.StatusCode >= 300:
		return nil, &Error{Code: NotSOAP, At: -1, Err: fmt.Errorf("HTTP status %s, type %.60q", resp.Status, media.Type)}
	default:
		return nil, err
	}
	if f, ok := e.Fault(); ok {
		return nil, &Error{Code: Faulted, At: -1, Fault: &f}
	}
	if resp.StatusCode >= 300 {
		return nil, &Error{Code: NotSOAP, At: -1, Err: fmt.Errorf("HTTP status %s with an envelope that is no fault", resp.Status)}
	}
	return e, nil
}

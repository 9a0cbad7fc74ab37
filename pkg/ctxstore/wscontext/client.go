package wscontext

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/hhfr/hhfr/pkg/ctxstore"
	"github.com/hhfr/hhfr/pkg/soap"
)

// DefaultRequestTimeout bounds a call of a service: a value of the longest kind over a link of some
// Mbit/s.
const DefaultRequestTimeout = 30 * time.Second

// ClientConfig is how a service is called. The zero value works.
type ClientConfig struct {
	// Token is sent as a bearer token (RFC 6750), if it is not empty.
	Token string
	// TLS is for https; nil means the system's roots, and no certificate of our own.
	TLS *tls.Config
	// Transport sends the requests; nil means one with TLS, and the proxy of the environment.
	Transport http.RoundTripper
	// Timeout bounds a call; 0 means [DefaultRequestTimeout].
	Timeout time.Duration
	// SOAP is the version to speak; None means 1.1.
	SOAP soap.Version
}

// ContextServiceHandler calls a context service. It is safe for concurrent use. Its errors are
// those of a store ([ctxstore.Error]), or the cause of ctx once that is done.
type ContextServiceHandler struct {
	url  string
	cfg  ClientConfig
	http *http.Client
}

// NewContextServiceHandler returns a handler for the service at an http or https URL. Nothing is
// sent yet.
func NewContextServiceHandler(address string, cfg ClientConfig) (*ContextServiceHandler, error) {
	u, err := url.Parse(address)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Hostname() == "" {
		return nil, &ctxstore.Error{
			Code: ctxstore.Invalid, Err: fmt.Errorf("%q is no http or https URL", address),
			Hint: "write http://HOST:PORT/PATH",
		}
	}
	if u.User != nil {
		return nil, &ctxstore.Error{
			Code: ctxstore.Invalid, Err: fmt.Errorf("%q: a context service takes no user and password", u.Redacted()),
			Hint: "it takes a bearer token or a certificate",
		}
	}
	if cfg.Timeout <= 0 {
		cfg.Timeout = DefaultRequestTimeout
	}
	if cfg.SOAP == soap.None {
		cfg.SOAP = soap.V11
	}
	if cfg.Transport == nil {
		cfg.Transport = &http.Transport{
			Proxy: http.ProxyFromEnvironment, TLSClientConfig: cfg.TLS, ForceAttemptHTTP2: true,
			MaxIdleConnsPerHost: 16, IdleConnTimeout: 30 * time.Second, TLSHandshakeTimeout: cfg.Timeout,
		}
	}
	stay := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &ContextServiceHandler{
		url: u.String(), cfg: cfg, http: &http.Client{Transport: cfg.Transport, CheckRedirect: stay},
	}, nil
}

// Close closes idle connections.
func (h *ContextServiceHandler) Close() error {
	h.http.CloseIdleConnections()
	return nil
}

// GetContent returns the contents of a context.
func (h *ContextServiceHandler) GetContent(ctx context.Context, uri string) ([]byte, error) {
	e, err := h.get(ctx, uri)
	return e.Value, err
}

// SetContent sets the contents of a context, which exists from then on, until it is deleted.
func (h *ContextServiceHandler) SetContent(ctx context.Context, uri string, content []byte) error {
	_, err := h.set(ctx, uri, content, nil, nil)
	return err
}

// Begin creates a context for an activity and returns its identifier. kind is the URI of its type,
// parent that of the activity around it; both may be empty. timeout 0 means [DefaultTimeout].
func (h *ContextServiceHandler) Begin(ctx context.Context, kind, parent string, timeout time.Duration,
	content []byte) (uri string, err error) {
	w := newWriter(h.cfg.SOAP, std("begin"))
	for _, f := range []struct{ name, text string }{{"type", kind}, {"parent", parent}} {
		if f.text != "" {
			w.field(std(f.name), f.text)
		}
	}
	if timeout != 0 {
		w.field(std("timeout"), seconds(timeout))
	}
	if len(content) > 0 {
		n := qname(std("contents"))
		w.raw("<", n, ">")
		w.contents(content).raw("</", n, ">")
	}
	m, err := h.call(ctx, std("begin"), parent, w)
	if err != nil {
		return "", err
	}
	return m.fields[std("context-identifier")], nil
}

// Complete ends an activity.
func (h *ContextServiceHandler) Complete(ctx context.Context, uri string) error {
	_, err := h.about(ctx, std("complete"), uri)
	return err
}

// GetStatus returns the status of an activity, [StatusActive] or [StatusCompleted].
func (h *ContextServiceHandler) GetStatus(ctx context.Context, uri string) (string, error) {
	m, err := h.about(ctx, std("getStatus"), uri)
	if err != nil {
		return "", err
	}
	return m.text, nil
}

// SetTimeout has a context live so long from now on; 0: forever.
func (h *ContextServiceHandler) SetTimeout(ctx context.Context, uri string, timeout time.Duration) error {
	w := newWriter(h.cfg.SOAP, std("setTimeout")).field(std("context-identifier"), uri)
	_, err := h.call(ctx, std("setTimeout"), uri, w.field(std("timeout"), seconds(timeout)))
	return err
}

// GetTimeout returns how long a context will live; 0: forever.
func (h *ContextServiceHandler) GetTimeout(ctx context.Context, uri string) (time.Duration, error) {
	m, err := h.about(ctx, std("getTimeout"), uri)
	if err != nil {
		return 0, err
	}
	d, ok := parseSeconds(strings.TrimSpace(m.text))
	if !ok {
		return 0, h.strange(uri, fmt.Errorf("the timeout %.40q", m.text))
	}
	return d, nil
}

// about calls an operation that takes an identifier only.
func (h *ContextServiceHandler) about(ctx context.Context, name soap.Name, uri string) (*soapMessage, error) {
	return h.call(ctx, name, uri, newWriter(h.cfg.SOAP, name).field(std("context-identifier"), uri))
}

func (h *ContextServiceHandler) get(ctx context.Context, uri string) (ctxstore.Entry, error) {
	m, err := h.about(ctx, std("getContents"), uri)
	if err != nil {
		return ctxstore.Entry{}, err
	}
	e := ctxstore.Entry{Value: m.contents}
	if e.Revision, err = strconv.ParseUint(m.fields[std("version")], 10, 64); err != nil {
		return e, h.strange(uri, errors.New("contents without a version"))
	}
	if e.Expires, err = parseInstant(m.expires); err != nil {
		return e, h.strange(uri, err)
	}
	return e, nil
}

// set sets contents; a timeout, if given, replaces the earlier one, 0 being forever.
func (h *ContextServiceHandler) set(ctx context.Context, uri string, value []byte, expect *uint64,
	timeout *time.Duration) (version uint64, err error) {
	w := newWriter(h.cfg.SOAP, std("setContents")).field(std("context-identifier"), uri)
	if expect != nil {
		w.field(std("expect-version"), strconv.FormatUint(*expect, 10))
	}
	if timeout != nil {
		w.field(std("timeout"), seconds(*timeout))
	}
	m, err := h.call(ctx, std("setContents"), uri, w.contents(value))
	if err != nil {
		return 0, err
	}
	if version, err = strconv.ParseUint(m.fields[std("version")], 10, 64); err != nil {
		return 0, h.strange(uri, errors.New("contentsSet without a version"))
	}
	return version, nil
}

// parseInstant reads what instant writes.
func parseInstant(text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	return time.Parse(time.RFC3339Nano, text)
}

// replies are the elements that answer requests.
var replies = func() map[soap.Name]soap.Name {
	m := map[soap.Name]soap.Name{}
	for _, p := range ports {
		m[p.request] = p.reply
	}
	return m
}()

// call sends a request and returns the reply to it.
func (h *ContextServiceHandler) call(ctx context.Context, name soap.Name, uri string,
	w *envelopeWriter) (*soapMessage, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, h.cfg.Timeout, errSilent)
	defer cancel()
	resp, err := h.post(ctx, name, uri, w.end())
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, MaxRequest+1))
	if err != nil {
		return nil, h.failed(ctx, uri, err)
	}
	if len(body) > MaxRequest {
		return nil, h.strange(uri, fmt.Errorf("a reply of more than %d bytes", MaxRequest))
	}
	m, err := parseMessage(body)
	if err != nil {
		return nil, h.strange(uri, err)
	}
	if want := replies[name]; m.name != want {
		return nil, h.strange(uri, fmt.Errorf("%.200s where %s was expected", m.name, want.Local))
	}
	return m, nil
}

// post sends an envelope, and returns the response if it has no fault.
func (h *ContextServiceHandler) post(ctx context.Context, name soap.Name, uri string,
	envelope []byte) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, h.url, bytes.NewReader(envelope))
	if err != nil {
		return nil, h.failed(ctx, uri, err)
	}
	fields, err := soap.RequestFields(h.cfg.SOAP, action(name))
	if err != nil {
		return nil, err
	}
	for _, f := range fields {
		req.Header[f.Name] = []string{f.Value}
	}
	if h.cfg.Token != "" {
		req.Header.Set("Authorization", "Bearer "+h.cfg.Token)
	}
	resp, err := h.http.Do(req)
	if err != nil {
		return nil, h.failed(ctx, uri, err)
	}
	if resp.StatusCode == http.StatusOK {
		return resp, nil
	}
	defer resp.Body.Close()
	return nil, h.refused(resp, uri)
}

// errSilent is why a call ends that takes too long.
var errSilent = errors.New("the context service is silent")

// failed is the error for a request that got no response.
func (h *ContextServiceHandler) failed(ctx context.Context, uri string, err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		err = u.Err // the URL is told already
	}
	if cause := context.Cause(ctx); errors.Is(cause, errSilent) {
		err = fmt.Errorf("no answer within %v", h.cfg.Timeout)
	} else if cause != nil {
		return cause
	}
	return &ctxstore.Error{
		Code: ctxstore.Unavailable, URI: uri, At: h.url, Err: err, Hint: "does a context service run there?",
	}
}

// strange is the error for a reply that is none of a context service.
func (h *ContextServiceHandler) strange(uri string, err error) error {
	return &ctxstore.Error{
		Code: ctxstore.Unavailable, URI: uri, At: h.url,
		Err: fmt.Errorf("the reply is none of a context service: %w", err),
	}
}

// refused is the error for a response that is not 200.
func (h *ContextServiceHandler) refused(resp *http.Response, uri string) error {
	body, _ := io.ReadAll(io.LimitReader(resp.Body, 64<<10)) // a part may do to say what is wrong
	if e, err := soap.Parse(body, soap.Limits{}); err == nil {
		if f, ok := e.Fault(); ok {
			return errorOf(f, uri, h.url)
		}
	}
	text, _, _ := strings.Cut(strings.TrimSpace(string(body)), "\n")
	e := &ctxstore.Error{Code: ctxstore.Unavailable, URI: uri, At: h.url,
		Err: fmt.Errorf("status %d: %.200s", resp.StatusCode, text)}
	switch resp.StatusCode {
	case http.StatusUnauthorized, http.StatusForbidden:
		e.Code = ctxstore.Permission
	case http.StatusNotFound, http.StatusMethodNotAllowed:
		e.Hint = "is the path of the URL that of a context service?"
	}
	return e
}

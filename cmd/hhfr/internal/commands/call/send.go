package call

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/hhfr/hhfr"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/command"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/exit"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/plainsoap"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/printing"
	"github.com/hhfr/hhfr/internal/envelope"
	"github.com/hhfr/hhfr/internal/values"
	"github.com/hhfr/hhfr/pkg/soap"
)

// maxReply bounds a reply in plain SOAP, in bytes, as hhfr.Reply.ReadAll does on streams.
const maxReply = 64 << 20

const fateHint = "the request was not sent again, since it may have been processed"

// callSender makes the calls, by a client of the library or by one of HTTP alone.
type callSender struct {
	op      *calledOperation
	timeout time.Duration
	version soap.Version
	client  *hhfr.Client // nil: plain
	http    *http.Client
	header  http.Header
	digest  *digestLogin // nil: another login, or none
	close   func() error
}

// madeCall is a call and its reply.
type madeCall struct {
	request       *values.JSON
	status        int
	header        http.Header
	sent, reply   []byte
	tree          *envelope.Tree     // of the reply; nil: it is empty
	of            *values.Translator // of tree
	took          time.Duration
	onStream      bool
	wire, carried int64 // of both directions, if it was on a stream
}

func (o *callOptions) open(
	ctx context.Context, g *command.Global, op *calledOperation, secure *tls.Config, header http.Header,
	password string,
) (*callSender, error) {
	s := &callSender{op: op, timeout: o.timeout, version: soap.V11, header: header}
	if o.Digest {
		s.digest = &digestLogin{user: o.User, password: password, random: rand.Text}
	}
	if op.SOAP == 12 {
		s.version = soap.V12
	}
	if o.by.Queue.Address == nil && (o.plain || o.by.FastInfoset != "") {
		s.http, s.close = plainClient(secure), func() error { return nil }
		s.http.Transport = o.by.FastInfoset.Over(s.http.Transport, g)
		return s, nil
	}
	store, err := o.store.Open(ctx, g)
	if err != nil {
		return nil, err
	}
	if o.by.Queue.Address != nil {
		named := o.store.Spec
		if o.plain {
			named = ""
		}
		q, err := o.by.QueueClient(g, op.Output == nil, secure, named, store)
		if err != nil {
			return nil, errors.Join(err, store.Close())
		}
		s.http, s.close = &http.Client{Transport: q}, func() error { return errors.Join(q.Close(), store.Close()) }
		return s, nil
	}
	cfg := o.config(g, secure, header)
	cfg.Store = store
	if s.client, err = hhfr.Dial(ctx, op.url.String(), cfg); err != nil {
		return nil, errors.Join(unreached(err), store.Close())
	}
	s.close = func() error { return errors.Join(s.client.Close(), store.Close()) }
	return s, nil
}

func (o *callOptions) config(g *command.Global, secure *tls.Config, header http.Header) *hhfr.Config {
	return &hhfr.Config{
		TLS: secure, Header: header, Log: g.Logger(),
		OnPlain: func(why error) { g.Detail("plain SOAP: %v", why) },
	}
}

func plainClient(secure *tls.Config) *http.Client {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.TLSClientConfig = secure
	return &http.Client{
		Transport:     t,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// descriptionClient fetches a description, and what it imports: from its own origin with the fields
// that the service gets.
func descriptionClient(location string, secure *tls.Config, header http.Header) *http.Client {
	c := plainClient(secure)
	if u, err := url.Parse(location); err == nil && u.Host != "" {
		c.Transport = &authorized{c.Transport, *u, header}
	}
	return c
}

// authorized adds fields to requests to one origin.
type authorized struct {
	http.RoundTripper
	origin url.URL
	header http.Header
}

// RoundTrip implements [http.RoundTripper].
func (a *authorized) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Scheme == a.origin.Scheme && r.URL.Host == a.origin.Host {
		r = r.Clone(r.Context())
		for name, list := range a.header {
			r.Header[name] = list
		}
	}
	return a.RoundTripper.RoundTrip(r)
}

// call makes a call, and reads the whole reply.
func (s *callSender) call(ctx context.Context, text []byte) (x *madeCall, err error) {
	if s.timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, s.timeout, exit.Withf(exit.Failed,
			"the service may have got the request all the same", "no reply within %s (--timeout)", s.timeout))
		defer cancel()
	}
	x = &madeCall{sent: text}
	began := time.Now()
	err = s.once(ctx, x)
	if err == nil && x.status == http.StatusUnauthorized && s.digest != nil && s.digest.challenged(x.header) {
		err = s.once(ctx, x)
	}
	x.took = time.Since(began)
	if err != nil && ctx.Err() != nil {
		return x, context.Cause(ctx)
	}
	return x, unreached(err)
}

func (s *callSender) once(ctx context.Context, x *madeCall) error {
	own := http.Header{}
	if s.digest != nil {
		if text := s.digest.authorization(http.MethodPost, s.op.url.RequestURI()); text != "" {
			own.Set("Authorization", text)
		}
	}
	if s.client == nil {
		return s.plainCall(ctx, x, own)
	}
	return s.streamCall(ctx, x, own)
}

func (s *callSender) streamCall(ctx context.Context, x *madeCall, own http.Header) error {
	before := s.client.Counters()
	reply, err := s.client.Call(ctx, &hhfr.Request{Action: s.op.Action, Header: own, Body: hhfr.Body(x.sent)})
	if err != nil {
		return err
	}
	x.status, x.header = reply.Status, reply.Header
	if x.reply, err = reply.ReadAll(); err != nil {
		return exit.With(exit.Partial, err, fateHint)
	}
	after := s.client.Counters()
	x.onStream = after.Received.Messages > before.Received.Messages
	if x.onStream {
		x.wire = after.Sent.Wire + after.Received.Wire - before.Sent.Wire - before.Received.Wire
		x.carried = after.Sent.Bytes + after.Received.Bytes - before.Sent.Bytes - before.Received.Bytes
	}
	return nil
}

// plainCall is a call in plain SOAP. An error once there was a connection is a failure with
// [exit.Partial], as for sessions: the request may have been written, and handled. A queue has no
// connection, and says so when its broker may have the request.
func (s *callSender) plainCall(ctx context.Context, x *madeCall, own http.Header) error {
	var connected atomic.Bool
	err := s.post(httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GotConn: func(httptrace.GotConnInfo) { connected.Store(true) },
	}), x, own)
	// In TLS 1.3 a client hears only after the request that its certificate is not accepted.
	var alert *net.OpError
	unheard := errors.As(err, &alert) && alert.Op == "remote error" && strings.Contains(alert.Error(), "certificate")
	if err != nil && connected.Load() && !unheard {
		return exit.With(exit.Partial, err, fateHint)
	}
	return err
}

func (s *callSender) post(ctx context.Context, x *madeCall, own http.Header) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.op.url.String(), hhfr.Body(x.sent))
	if err != nil {
		return err
	}
	req.ContentLength = int64(len(x.sent))
	fields, err := soap.RequestFields(s.version, s.op.Action)
	if err != nil {
		return err
	}
	for _, f := range fields {
		req.Header.Set(f.Name, f.Value)
	}
	maps.Copy(req.Header, s.header)
	maps.Copy(req.Header, own)
	reply, err := s.http.Do(req)
	if err != nil {
		return err
	}
	defer reply.Body.Close()
	x.status, x.header = reply.StatusCode, reply.Header
	x.reply, err = io.ReadAll(io.LimitReader(reply.Body, maxReply+1))
	if err == nil && len(x.reply) > maxReply {
		err = fmt.Errorf("a reply of more than %d bytes", maxReply)
	}
	return err
}

// unreached gives an error its exit code.
func unreached(err error) error {
	if err == nil {
		return nil
	}
	var known *exit.Failure
	if errors.As(err, &known) {
		return err
	}
	if plainsoap.MayBeHandled(err) {
		return exit.With(exit.Partial, err, "")
	}
	var e *hhfr.Error
	if errors.As(err, &e) && e.Code == hhfr.FateUnknown {
		return exit.With(exit.Partial, err, fateHint)
	}
	if e != nil && e.Code != hhfr.Unreachable && e.Code != hhfr.NoHHFR {
		return err
	}
	return exit.With(exit.NoPeer, err, exit.UnreachableHint(err))
}

// printCurl prints a shell command that makes the call.
func printCurl(
	g *command.Global, o *callOptions, op *calledOperation, header http.Header, text []byte,
) error {
	version := soap.V11
	if op.SOAP == 12 {
		version = soap.V12
	}
	own, err := soap.RequestFields(version, op.Action)
	if err != nil {
		return err
	}
	var b strings.Builder
	b.WriteString("curl -s")
	for _, f := range own {
		if len(header.Values(f.Name)) == 0 {
			fmt.Fprintf(&b, " -H %s", printing.ShellWord(f.Name+": "+f.Value))
		}
	}
	for _, f := range o.fields {
		fmt.Fprintf(&b, " -H %s", printing.ShellWord(f))
	}
	for _, arg := range o.tls.Curl() {
		b.WriteString(" " + arg[0])
		if arg[1] != "" {
			b.WriteString(" " + printing.ShellWord(arg[1]))
		}
	}
	if o.Digest {
		b.WriteString(" --digest")
	}
	if o.User != "" && o.WSS == "" {
		fmt.Fprintf(&b, " --user %s", printing.ShellWord(o.User)) // curl asks for the password
	}
	if o.TokenFile != "" {
		fmt.Fprintf(&b, ` -H "Authorization: Bearer $(head -n 1 %s)"`, printing.ShellWord(o.TokenFile))
	}
	fmt.Fprintf(&b, " --data-binary %s %s\n", printing.ShellWord(string(text)), printing.ShellWord(op.url.String()))
	_, err = io.WriteString(g.Out, b.String())
	return err
}

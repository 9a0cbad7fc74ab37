// Package sequenced sends the requests of clients that know no WS-ReliableMessaging to a service
// that wants it, in sequences of package soaprm: a client sees plain SOAP, the service a sequence
// for each address and principal.
package sequenced

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/hhfr/hhfr/internal/xmlns"
	"github.com/hhfr/hhfr/pkg/clock"
	"github.com/hhfr/hhfr/pkg/ctxstore"
	"github.com/hhfr/hhfr/pkg/soap"
	"github.com/hhfr/hhfr/pkg/soap/addressing"
	"github.com/hhfr/hhfr/pkg/wsrm/soaprm"
)

const (
	// maxSources bounds the sequences that are open at once.
	maxSources = 256
	// giveUp is how long nothing may be heard of the service until a request is answered without
	// its reply.
	giveUp = 30 * time.Second
	// finishing bounds the end of a sequence.
	finishing = 2 * time.Second
)

// ForwarderConfig is what a [Forwarder] works with. It is copied.
type ForwarderConfig struct {
	// URL has scheme and host of the service; required.
	URL *url.URL
	// Version is that of the sequences; required.
	Version soaprm.Protocol
	// Store keeps them; required.
	Store ctxstore.Store
	// Transport makes the requests; required.
	Transport http.RoundTripper
	// Clock is the clock; nil means the real one. Log hears what went wrong; nil: nobody.
	Clock clock.Clock
	Log   *slog.Logger
}

// Forwarder forwards requests. It is safe for concurrent use.
type Forwarder struct {
	cfg ForwarderConfig

	mu      sync.Mutex
	sources map[string]*openSource
	ending  map[string]*openSource // the last one of a key that is ending still
	uses    int                    // a clock of uses
	closed  bool
	wait    sync.WaitGroup // ends of sequences
}

// NewForwarder returns one; sequences are created when there is a request for them.
func NewForwarder(cfg ForwarderConfig) *Forwarder {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	return &Forwarder{cfg: cfg, sources: map[string]*openSource{}, ending: map[string]*openSource{}}
}

// Takes reports whether a request with these fields may be one that goes in a sequence. Others, as
// those with attachments or compressed bodies, go as they are.
func Takes(method string, fields http.Header) bool {
	kind := soap.ParseContentType(fields.Get("Content-Type"))
	return method == http.MethodPost && fields.Get("Content-Encoding") == "" && kind.Version() != soap.None &&
		!strings.HasPrefix(kind.Type, "multipart/")
}

// Own reports whether a message goes as it is: it is in a sequence of its own, is about sequences,
// wants its reply elsewhere, or is no envelope that header blocks can be added to.
func Own(message []byte) bool {
	a, err := soap.Split(message, soap.Limits{})
	if err != nil {
		return true
	}
	for _, list := range [][]soap.Element{a.Header, a.Body} {
		for i := range list {
			switch list[i].Name.Space {
			case xmlns.WSRM, xmlns.WSRM10, xmlns.WSMC:
				return true
			}
		}
	}
	p, err := addressing.Read(&a.Envelope)
	if err != nil {
		return true
	}
	return p != nil && (strings.HasPrefix(p.Action, xmlns.WSRM) || strings.HasPrefix(p.Action, xmlns.WSRM10) ||
		!p.ReplyTo.IsAnonymous() && p.ReplyTo.Address != noneAddress)
}

// noneAddress is the reply address of who wants none (1.0 Core, section 2.1).
const noneAddress = addressing.V200508 + "/none"

// openSource is a sequence for one address and principal.
type openSource struct {
	opened chan struct{} // closed when source or err is there
	source *soaprm.SequenceSource
	err    error
	seen   *observer

	calls, used int // under the Forwarder's mutex
	before      *openSource
	ended       chan struct{} // closed when it has left the store to the next one
}

// Do sends a request in a sequence, and returns its reply. path is its target, fields are those of
// its client. Errors are for people, and say what became of the request; the cause of ctx.
func (f *Forwarder) Do(ctx context.Context, path string, fields http.Header, message []byte) (*ForwardedReply, error) {
	c, err := newForwardedCall(f.cfg.Version, fields, message)
	if err != nil {
		return nil, err
	}
	s, key, err := f.enter(ctx, path, c)
	if err != nil {
		if s != nil && s.seen.denied != nil {
			return s.seen.denied, nil
		}
		return nil, err
	}
	defer f.leave(s)
	s.seen.add(c)
	defer s.seen.remove(c)
	sent, err := s.source.Send(ctx, soaprm.OutgoingEnvelope{Envelope: c.envelope, Action: c.action, OneWay: c.oneWay})
	if err != nil {
		return nil, f.failed(ctx, key, s, err)
	}
	reply, err := sent.Reply(ctx)
	if err != nil {
		s.source.Unwanted(sent.Number)
		return nil, f.failed(ctx, key, s, err)
	}
	return c.reply(reply), nil
}

// enter finds the sequence for a call, or creates it.
func (f *Forwarder) enter(ctx context.Context, path string, c *forwardedCall) (s *openSource, key string, err error) {
	key = path + "\n" + c.principal
	f.mu.Lock()
	s = f.sources[key]
	if f.closed || s == nil && len(f.sources) >= maxSources && !f.evictLocked() {
		f.mu.Unlock()
		return nil, key, errors.New("too many sequences are open; the request was not sent")
	}
	if s == nil {
		s = &openSource{opened: make(chan struct{}), ended: make(chan struct{}), before: f.ending[key]}
		s.seen = &observer{of: s, next: f.cfg.Transport, fields: c.fields, calls: map[string]*forwardedCall{}}
		f.sources[key] = s
		f.wait.Go(func() { f.open(s, key, path, c) })
	}
	f.uses++
	s.used = f.uses
	s.calls++
	f.mu.Unlock()
	select {
	case <-s.opened:
		err = s.err
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	if err != nil {
		f.leave(s)
		if ctx.Err() != nil {
			s = nil // it may be opened still
		}
	}
	return s, key, err
}

func (f *Forwarder) leave(s *openSource) {
	f.mu.Lock()
	defer f.mu.Unlock()
	s.calls--
}

// open creates the sequence, or goes on with the one in the store.
func (f *Forwarder) open(s *openSource, key, path string, c *forwardedCall) {
	defer close(s.opened)
	if s.before != nil {
		<-s.before.ended
		s.before = nil
	}
	space := ""
	if c.addressed {
		space = c.addressing
	}
	at, err := f.cfg.URL.Parse(path)
	if err == nil {
		sum := sha256.Sum256([]byte(c.principal))
		s.source, err = soaprm.OpenSource(context.Background(), soaprm.SourceConfig{
			URL: at.String(), Version: f.cfg.Version, Addressing: space, SOAP: c.version,
			Store:  principalStore{f.cfg.Store, ":" + hex.EncodeToString(sum[:16])},
			Client: &http.Client{Transport: s.seen, CheckRedirect: asItIs}, GiveUp: giveUp, Clock: f.cfg.Clock,
			Log: f.cfg.Log,
		})
	}
	if err != nil {
		s.err = fmt.Errorf("no sequence at the upstream: %w; the request was not sent", err)
		f.forget(key, s)
		f.left(key, s)
	}
}

// left says that a sequence has left the store to the next one.
func (f *Forwarder) left(key string, s *openSource) {
	close(s.ended)
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.ending[key] == s {
		delete(f.ending, key)
	}
}

// asItIs follows no redirection.
func asItIs(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// failed takes a sequence out of use whose message did not get through: the next request goes on
// with what the store has of it, or has a new one.
func (f *Forwarder) failed(ctx context.Context, key string, s *openSource, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	fate := "; whether the request was handled is unknown"
	switch {
	case errors.Is(err, soaprm.ReplyLost):
		return fmt.Errorf("%w; the request was handled", err)
	case errors.Is(err, soaprm.TooLarge):
		return fmt.Errorf("%w; the request was not sent", err)
	case errors.Is(err, soaprm.Unsent):
		fate = "; the request was not sent"
	case errors.Is(err, soaprm.Unanswered):
		fate = "; the request is in the store, and sent before the next one"
	}
	if f.forget(key, s) {
		f.wait.Go(func() {
			_ = s.source.Close()
			f.left(key, s)
		})
	}
	return fmt.Errorf("%w%s", err, fate)
}

// forget takes a sequence out of use, and reports whether it was the first to do so.
func (f *Forwarder) forget(key string, s *openSource) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.sources[key] != s {
		return false
	}
	delete(f.sources, key)
	f.ending[key] = s
	return true
}

// evictLocked ends the sequence that was used least recently, of those without calls.
func (f *Forwarder) evictLocked() bool {
	least := ""
	for key, s := range f.sources {
		if s.calls == 0 && (least == "" || s.used < f.sources[least].used) {
			least = key
		}
	}
	if least == "" {
		return false
	}
	s := f.sources[least]
	delete(f.sources, least)
	f.ending[least] = s
	f.wait.Go(func() { f.end(least, s) })
	return true
}

// end ends a sequence in order. What is not acknowledged stays in the store.
func (f *Forwarder) end(key string, s *openSource) {
	<-s.opened
	if s.source == nil {
		return
	}
	defer f.left(key, s)
	ctx, cancel := context.WithTimeout(context.Background(), finishing)
	defer cancel()
	if err := s.source.Finish(ctx); err != nil {
		f.cfg.Log.Warn("the store has messages that are not acknowledged", "err", err)
	}
	_ = s.source.Close()
}

// Close ends all sequences, and waits for that.
func (f *Forwarder) Close() {
	f.mu.Lock()
	all := f.sources
	f.sources, f.closed = map[string]*openSource{}, true
	f.mu.Unlock()
	for key, s := range all {
		f.wait.Go(func() { f.end(key, s) })
	}
	f.wait.Wait()
	(&http.Client{Transport: f.cfg.Transport}).CloseIdleConnections()
}

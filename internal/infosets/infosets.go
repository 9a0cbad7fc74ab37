// Package infosets carries plain SOAP as Fast Infoset over HTTP, by content negotiation, as Apache
// CXF and Metro have it: a client names the media type in Accept, and writes Fast Infoset where it
// was answered so. A [Transport] is the client's side; messages before it are XML.
package infosets

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/hhfr/hhfr/internal/codec/fastinfoset"
	"github.com/hhfr/hhfr/pkg/soap"
)

// MediaType is that of envelopes of a version of SOAP in Fast Infoset (X.891 annex C; CXF).
func MediaType(v soap.Version) string {
	if v == soap.V12 {
		return "application/soap+fastinfoset"
	}
	return "application/fastinfoset"
}

// Is reports whether a Content-Type is one of [MediaType].
func Is(m soap.Media) bool { return m.Type == MediaType(soap.V11) || m.Type == MediaType(soap.V12) }

// ContentType is the Content-Type of an envelope in Fast Infoset.
func ContentType(v soap.Version, action string) string {
	if v == soap.V12 && action != "" {
		return fmt.Sprintf("%s; action=%q", MediaType(v), action)
	}
	return MediaType(v)
}

const (
	// maxDocument is the longest message that is converted, in bytes: it is in memory as a whole.
	maxDocument = 64 << 20
	// maxKnown is how much of the text of a reply is made at once, to send it with its length.
	maxKnown = 1 << 20
	// recognized is how much of an envelope tells its version, in bytes.
	recognized = 1 << 10
	// maxServices is how many services are remembered.
	maxServices = 1024
)

// Transport is an [http.RoundTripper] that sends requests of SOAP in Fast Infoset where the
// service takes it, and has replies in Fast Infoset as XML. What is no envelope in XML, as messages
// with attachments, passes as it is, and so do requests that have no infoset in Fast Infoset, or
// are longer than 64 MiB.
//
// Without Optimistic a service gets XML with Accept (pessimistic negotiation) until it answers in
// Fast Infoset. One that refuses a form by status 415, and answers in the other, gets the request
// in that at once; a longer one than 1 MiB does not change its form. Where the reply to Fast
// Infoset is XML, or a status that says it was not understood, later requests are XML. It is safe
// for concurrent use.
type Transport struct {
	// Base sends requests; required.
	Base http.RoundTripper
	// Optimistic: also the first request to a service is in Fast Infoset.
	Optimistic bool
	// Tell, if given, is called when it becomes known whether a service speaks Fast Infoset: other
	// is the reply by which it does not, or nil. It is also called for a reply that cannot be read.
	Tell func(service string, other *http.Response, unread error)

	mu    sync.Mutex
	known map[string]bool // which services take it
}

// RoundTrip implements [http.RoundTripper]. The error of a reply that cannot be read as Fast
// Infoset has a *[fastinfoset.Error] in it.
func (t *Transport) RoundTrip(req *http.Request) (*http.Response, error) {
	media := soap.ParseContentType(req.Header.Get("Content-Type"))
	version := media.Version()
	if version == soap.None || media.Boundary != "" || req.Body == nil || req.Header.Get("Content-Encoding") != "" ||
		media.Charset != "" && media.Charset != "utf-8" {
		return t.Base.RoundTrip(req)
	}
	asked := req.Clone(req.Context())
	accept := MediaType(version)
	if own := req.Header.Get("Accept"); own != "" {
		accept += ", " + own
	} else {
		accept += ", " + media.Type + ", */*"
	}
	asked.Header.Set("Accept", accept)
	onlyGzip(asked.Header)
	service := req.URL.Scheme + "://" + req.URL.Host + req.URL.Path
	takes, most := t.takes(service), int64(maxKnown)
	if takes {
		most = maxDocument
	}
	text, err := io.ReadAll(io.LimitReader(req.Body, most+1))
	if err != nil {
		_ = req.Body.Close()
		return nil, err
	}
	if int64(len(text)) > most {
		asked.Body = &rest{io.MultiReader(bytes.NewReader(text), req.Body), req.Body}
		resp, _, err := t.reply(service, asked, false)
		return resp, err
	}
	_ = req.Body.Close()
	m := &sentEnvelope{text: text, version: version, action: media.Action}
	resp, infoset, err := t.send(service, asked, m, takes)
	again := err == nil && resp.StatusCode == http.StatusUnsupportedMediaType && infoset != m.sent
	if !again || infoset && !m.written() {
		return resp, err
	}
	_, _ = io.CopyN(io.Discard, resp.Body, recognized)
	_ = resp.Body.Close()
	resp, _, err = t.send(service, asked, m, infoset)
	return resp, err
}

// sentEnvelope is the content of a request.
type sentEnvelope struct {
	version soap.Version
	action  string
	text    []byte
	doc     []byte // the same in Fast Infoset; nil: it was not written, or cannot be
	sent    bool   // in Fast Infoset
}

// written reports whether there is a document of the text.
func (m *sentEnvelope) written() bool {
	if m.doc == nil {
		w := writers.Get().(*fastinfoset.InfosetWriter)
		defer writers.Put(w)
		if doc, err := w.FromXML(nil, m.text); err == nil {
			m.doc = doc
		}
	}
	return m.doc != nil
}

// send sends a request with an envelope, in Fast Infoset if that is wanted and there is one of it.
func (t *Transport) send(
	service string, req *http.Request, m *sentEnvelope, infoset bool,
) (*http.Response, bool, error) {
	if m.sent = infoset && m.written(); !m.sent {
		return t.reply(service, with(req, m.text), false)
	}
	req = with(req, m.doc)
	req.Header.Set("Content-Type", ContentType(m.version, m.action))
	return t.reply(service, req, true)
}

// rest is a body of which the beginning was read.
type rest struct {
	io.Reader
	io.Closer
}

// with is a request with another body.
func with(req *http.Request, body []byte) *http.Request {
	req = req.Clone(req.Context())
	req.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
	req.Body, _ = req.GetBody()
	req.ContentLength, req.TransferEncoding = int64(len(body)), nil
	req.Header.Del("Content-Length")
	return req
}

var writers = sync.Pool{New: func() any { return new(fastinfoset.InfosetWriter) }}

// takes reports whether a service is to get Fast Infoset.
func (t *Transport) takes(service string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	takes, known := t.known[service]
	return takes || t.Optimistic && !known
}

// learn notes whether a service speaks Fast Infoset; other is the reply by which it does not.
func (t *Transport) learn(service string, other *http.Response) {
	t.mu.Lock()
	takes, known := t.known[service]
	if t.known == nil || len(t.known) >= maxServices {
		t.known = map[string]bool{}
	}
	t.known[service] = other == nil
	t.mu.Unlock()
	if t.Tell != nil && (!known || takes != (other == nil)) {
		t.Tell(service, other, nil)
	}
}

// reply sends a request, in Fast Infoset or not, and has the reply in XML; infoset: it came as Fast
// Infoset.
func (t *Transport) reply(
	service string, req *http.Request, sent bool,
) (resp *http.Response, infoset bool, err error) {
	if resp, err = t.Base.RoundTrip(req); err != nil {
		return nil, false, err
	}
	media := soap.ParseContentType(resp.Header.Get("Content-Type"))
	switch {
	case Is(media):
		if err = unzipped(resp); err == nil {
			err = inXML(resp, media)
		}
		if err != nil {
			_ = resp.Body.Close()
			if t.Tell != nil {
				t.Tell(service, nil, err)
			}
			return nil, true, err
		}
		t.learn(service, nil)
		return resp, true, nil
	case media.Version() != soap.None, sent && refuses(resp.StatusCode):
		t.learn(service, resp)
	}
	return resp, false, nil
}

// onlyGzip leaves of the codings that a client takes the one that replies in Fast Infoset may have.
func onlyGzip(h http.Header) {
	isGzip := func(one string) bool { return strings.TrimSpace(one) == "gzip" }
	takes := slices.ContainsFunc(h["Accept-Encoding"], func(list string) bool {
		return slices.ContainsFunc(strings.Split(list, ","), isGzip)
	})
	if h.Del("Accept-Encoding"); takes {
		h.Set("Accept-Encoding", "gzip")
	}
}

// unzipped takes the coding off a reply in Fast Infoset.
func unzipped(resp *http.Response) error {
	switch coding := resp.Header.Get("Content-Encoding"); coding {
	case "", "identity":
		return nil
	case "gzip", "x-gzip":
		z, err := gzip.NewReader(resp.Body)
		if err != nil {
			return fmt.Errorf("the reply cannot be read: %w", err)
		}
		resp.Body = &rest{z, resp.Body}
		resp.Header.Del("Content-Encoding")
		return nil
	default:
		return fmt.Errorf("the reply cannot be read: it is coded by %.20q", coding)
	}
}

// refuses reports whether a status says that a message of this form is not understood.
func refuses(status int) bool {
	return status == http.StatusBadRequest || status == http.StatusNotAcceptable ||
		status == http.StatusUnsupportedMediaType || status == http.StatusNotImplemented
}

// inXML makes a reply in Fast Infoset one in XML.
func inXML(resp *http.Response, media soap.Media) error {
	doc, err := io.ReadAll(io.LimitReader(resp.Body, maxDocument+1))
	switch {
	case err == nil && len(doc) > maxDocument:
		err = fmt.Errorf("the reply is longer than %d bytes in Fast Infoset", maxDocument)
	case err == nil && len(doc) == 0:
		return nil
	}
	_ = resp.Body.Close()
	if err != nil {
		return err
	}
	from := fastinfoset.Reader{NoDoctype: true}
	from.Reset(doc)
	text := fastinfoset.NewTextReader(&from)
	var start bytes.Buffer
	_, err = io.CopyN(&start, text, maxKnown)
	whole := errors.Is(err, io.EOF)
	if err == nil || whole {
		version := soap.Recognize(start.Bytes()[:min(start.Len(), recognized)]).Version
		var kind string
		kind, err = soap.ContentType(version, media.Action)
		resp.Header.Set("Content-Type", kind)
	}
	if err != nil {
		return fmt.Errorf("the reply cannot be read: %w", err)
	}
	resp.Header.Del("Content-Length")
	resp.Body, resp.ContentLength, resp.TransferEncoding = io.NopCloser(io.MultiReader(&start, text)), -1, nil
	if whole {
		resp.Body, resp.ContentLength = io.NopCloser(&start), int64(start.Len())
		resp.Header.Set("Content-Length", strconv.Itoa(start.Len()))
	}
	return nil
}

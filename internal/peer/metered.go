package peer

import (
	"io"
	"net"
	"net/http"
	"net/netip"

	"github.com/hhfr/hhfr/internal/httpmsg"
	"github.com/hhfr/hhfr/internal/meter"
	"github.com/hhfr/hhfr/internal/responder"
	"github.com/hhfr/hhfr/pkg/clock"
	"github.com/hhfr/hhfr/pkg/soap"
	"github.com/hhfr/hhfr/pkg/streamer"
)

// plainClient is why a call is answered in plain SOAP: its client sent it so.
const plainClient = "client"

// name is that of the service at a path, for counters.
func (s *Services) name(path string) string {
	if s.Has(path) {
		return path
	}
	return meter.Other
}

// metered counts the calls of services by their paths: those over streams apart from plain ones.
func metered(role *meter.Role, services *Services, c clock.Clock, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		up := role.Upstream(services.name(r.URL.Path))
		overStream := responder.FactsOf(r.Context()) != nil
		var call meter.Call
		ok, request, reply := false, call.Request, call.Reply
		if overStream {
			up.Begin(&call, c.Now())
		} else {
			plain := up.Plain(plainClient)
			plain.Begin(&call, c.Now())
			request = func(n int) { plain.Request(n); call.Request(n) }
			reply = func(n int) { plain.Reply(n); call.Reply(n) }
		}
		if from, err := netip.ParseAddrPort(r.RemoteAddr); err == nil {
			call.From(net.TCPAddrFromAddrPort(from))
		}
		request(headSize(r))
		defer func() {
			if to, ok := w.(interface{ Count(to *streamer.WireBytes) }); ok { // not of a message in a sequence
				to.Count(call.Wire())
			}
			call.Done(c.Now(), ok)
		}()
		r.Body = &bodyCounter{ReadCloser: r.Body, count: request, look: func(start []byte) {
			call.Name(soap.OperationName(start))
		}}
		next.ServeHTTP(&replyCounter{ResponseWriter: w, count: reply, call: &call}, r)
		ok = true
	})
}

// headSize is about that of the head of a request as HTTP has it, in bytes.
func headSize(r *http.Request) int {
	n := len(r.Method) + len(r.URL.RequestURI()) + len(" HTTP/1.1\r\n\r\nHost: \r\n ") + len(r.Host)
	return n + fieldsSize(r.Header)
}

func fieldsSize(h http.Header) (n int) {
	for name, values := range h {
		for _, v := range values {
			n += len(name) + len(v) + len(": \r\n")
		}
	}
	return n
}

// bodyCounter counts the body of a request as it is read.
type bodyCounter struct {
	io.ReadCloser
	count func(int)
	look  func(start []byte) // is given the beginning; nil: nobody looks
}

// Read implements [io.Reader].
func (b *bodyCounter) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if b.count(n); n > 0 && b.look != nil {
		b.look(p[:n])
		b.look = nil
	}
	return n, err
}

// replyCounter counts a reply as it is written.
type replyCounter struct {
	http.ResponseWriter
	count  func(int)
	call   *meter.Call
	begun  bool
	looked bool // at the beginning of the reply
}

// Unwrap is for [http.ResponseController].
func (w *replyCounter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// WriteHeader implements [http.ResponseWriter].
func (w *replyCounter) WriteHeader(status int) {
	if !w.begun && status >= http.StatusOK {
		w.begun = true
		w.call.Status(status)
		w.count(len(httpmsg.ReplyHead(status, w.Header())))
	}
	w.ResponseWriter.WriteHeader(status)
}

// ReadFrom has the writer below read the body by itself, which sends what is there.
func (w *replyCounter) ReadFrom(body io.Reader) (int64, error) {
	if !w.begun {
		w.WriteHeader(http.StatusOK)
	}
	body = &bodyCounter{ReadCloser: io.NopCloser(body), count: func(int) {}, look: w.look}
	n, err := io.Copy(w.ResponseWriter, body)
	w.count(int(n))
	return n, err
}

// look finds out whether the reply is a fault, by its beginning.
func (w *replyCounter) look(start []byte) {
	if !w.looked && soap.IsFault(start) {
		w.call.Fault(start)
	}
	w.looked = true
}

// Write implements [io.Writer].
func (w *replyCounter) Write(p []byte) (int, error) {
	if !w.begun {
		w.WriteHeader(http.StatusOK)
	}
	w.look(p)
	n, err := w.ResponseWriter.Write(p)
	w.count(n)
	return n, err
}

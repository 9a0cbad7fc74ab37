package headers

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strconv"

	"github.com/hhfr/hhfr/pkg/soap"
)

// MaxMessage is the longest message that a [Chain] of an HTTP handler reads, in bytes.
const MaxMessage = 64 << 20

// Handler has the chain process all SOAP messages of a service: those in plain SOAP and, since
// services are handlers of net/http for both, those from streams. What is no envelope in UTF-8
// passes as it is; so does a compressed one, with its header blocks.
func (c Chain) Handler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		message, ok := ReadMessage(w, r)
		if !ok {
			next.ServeHTTP(w, WithBody(r, message))
			return
		}
		ctx, in, err := c.In(r.Context(), message)
		if refusal, is := RefusalOf(err); is {
			WriteFault(w, in.Version, refusal)
			return
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		var reply KeptReply
		next.ServeHTTP(&reply, WithBody(r.WithContext(ctx), in.Message))
		if reply.IsEnvelope() {
			if out, err := c.Out(ctx, reply.Body.Bytes()); err == nil {
				reply.Body = *bytes.NewBuffer(out)
			}
		}
		reply.WriteTo(w)
	})
}

// ReadMessage reads the body of a request whole. ok is false if no chain can process it: it is not
// posted, compressed, no envelope, or not in UTF-8. A body that breaks off, or is longer than
// [MaxMessage], ends the handler by a panic with [http.ErrAbortHandler] or is answered here.
func ReadMessage(w http.ResponseWriter, r *http.Request) (message []byte, ok bool) {
	if r.Method != http.MethodPost || r.Header.Get("Content-Encoding") != "" {
		return nil, false
	}
	message, err := io.ReadAll(http.MaxBytesReader(w, r.Body, MaxMessage))
	if err != nil {
		panic(fmt.Errorf("%w: %w", http.ErrAbortHandler, err))
	}
	media := soap.ParseContentType(r.Header.Get("Content-Type"))
	utf8 := media.Charset == "" || media.Charset == "utf-8" || media.Charset == "us-ascii"
	return message, utf8 && media.BinaryVersion() == soap.None && soap.Recognize(message).Version != soap.None &&
		bytes.HasPrefix(bytes.TrimLeft(bytes.TrimPrefix(message, []byte("\xEF\xBB\xBF")), " \t\r\n"), []byte("<"))
}

// WithBody returns a request with another body; nil: with its own.
func WithBody(r *http.Request, body []byte) *http.Request {
	if body == nil {
		return r
	}
	own := *r
	own.Body, own.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	own.Header = r.Header.Clone()
	own.Header.Del("Content-Length")
	return &own
}

// KeptReply is a ResponseWriter that keeps a reply whole.
type KeptReply struct {
	// Status is that of the reply; 0: none was written.
	Status int
	Body   bytes.Buffer
	header http.Header
}

// Header returns the fields.
func (r *KeptReply) Header() http.Header {
	if r.header == nil {
		r.header = http.Header{}
	}
	return r.header
}

// WriteHeader sets the status, once; informational ones are dropped.
func (r *KeptReply) WriteHeader(status int) {
	if r.Status == 0 && status >= http.StatusOK {
		r.Status = status
	}
}

// Write appends to the body.
func (r *KeptReply) Write(p []byte) (int, error) {
	r.WriteHeader(http.StatusOK)
	return r.Body.Write(p)
}

// IsEnvelope reports whether the reply is an envelope that a chain can process.
func (r *KeptReply) IsEnvelope() bool {
	return r.Header().Get("Content-Encoding") == "" && soap.Recognize(r.Body.Bytes()).Version != soap.None
}

// WriteTo sends the reply.
func (r *KeptReply) WriteTo(w http.ResponseWriter) {
	for name, values := range r.Header() {
		w.Header()[name] = values
	}
	Write(w, max(r.Status, http.StatusOK), "", r.Body.Bytes())
}

// Write sends a reply with its length. contentType empty: as the fields say.
func Write(w http.ResponseWriter, status int, contentType string, body []byte) {
	if contentType != "" {
		w.Header().Set("Content-Type", contentType)
	}
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	_, _ = w.Write(body) // the server knows if it does not get through
}

// WriteFault sends a fault, in SOAP 1.1 if the version is None.
func WriteFault(w http.ResponseWriter, v soap.Version, r *RefusedMessage) {
	if v == soap.None {
		v = soap.V11
	}
	e := r.Fault.Envelope(v)
	e.Header = append(e.Header, r.Blocks...)
	body, err := soap.Build(e)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	contentType, _ := soap.ContentType(v, "") // no action, no error
	Write(w, soap.FaultStatus(v, r.Fault.Code), contentType, body)
}

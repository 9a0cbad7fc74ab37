package soap

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
)

// Handler serves one endpoint that processes messages: it reads the envelope of a POST, refuses what must not be processed, has the rest served,
// and answers in the version of the request. It is an [http.Handler]; [Handler.Process] does the same for messages that came another way.
type Handler struct {
	// Node says which header blocks are understood.
	Node Node
	// Serve processes one message. It may be called concurrently. A nil envelope means accepted, without an answer. An *[Error] with a Fault is
	// told as that fault; any other error as the fault Server, without its text. Required.
	Serve func(ctx context.Context, request *Envelope, action string) (*Envelope, error)
	// Limits bound the requests.
	Limits Limits
	// Log hears of errors that are not told; nil: nobody.
	Log *slog.Logger
}

// ServeHTTP serves one request: 405 for other methods than POST, 415 for other types than those of SOAP, else what Process says.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	media := ParseContentType(r.Header.Get("Content-Type"))
	coding := r.Header.Get("Content-Encoding")
	switch {
	case r.Method != http.MethodPost:
		w.Header().Set("Allow", http.MethodPost)
		http.Error(w, "SOAP is posted here", http.StatusMethodNotAllowed)
		return
	case coding != "" && !strings.EqualFold(coding, "identity"):
		w.Header().Set("Accept-Encoding", "identity") // RFC 9110, section 12.5.3
		http.Error(w, "only SOAP without a content coding is served here", http.StatusUnsupportedMediaType)
		return
	case media.Version() == None || strings.HasPrefix(media.Type, "multipart/"):
		w.Header().Set("Accept", versions[V11].mediaType+", "+versions[V12].mediaType)
		http.Error(w, "only SOAP 1.1 and 1.2 are served here", http.StatusUnsupportedMediaType)
		return
	}
	limit := h.Limits.withDefaults().MaxBytes
	data, err := io.ReadAll(io.LimitReader(r.Body, int64(limit)+1))
	if err != nil {
		return // the caller is gone, or sends nothing more: there is nobody to tell
	}
	action := media.Action
	if media.Version() == V11 {
		action = ParseAction(strings.Join(r.Header["Soapaction"], ""))
	}
	reply, v, status := h.process(r.Context(), media, action, data)
	if reply != nil {
		contentType, err := ContentType(v, "")
		if err == nil {
			w.Header().Set("Content-Type", contentType)
		}
	}
	w.Header().Set("Content-Length", strconv.Itoa(len(reply)))
	w.WriteHeader(status)
	if _, err := w.Write(reply); err != nil {
		h.log().Debug("answer not written", "err", err)
	}
}

// Process serves one message and gives the answer with its version and HTTP status; a nil answer goes with 202.
func (h *Handler) Process(ctx context.Context, action string, message []byte) (reply []byte, v Version, status int) {
	return h.process(ctx, Media{}, action, message)
}

func (h *Handler) process(ctx context.Context, media Media, action string, message []byte) (reply []byte, v Version, status int) {
	if v = media.Version(); v == None {
		v = V11
	}
	if c := media.Charset; c != "" && c != "utf-8" && c != "us-ascii" {
		return h.fault(v, Fault{Code: Client, Reason: fmt.Sprintf("character encoding %.40q is not served", c)})
	}
	request, err := Parse(message, h.Limits)
	if err != nil {
		return h.fault(v, FaultFor(err))
	}
	v = request.Version
	if f, ok := h.Node.Check(request); !ok {
		return h.fault(v, f)
	}
	answer, err := h.Serve(ctx, request, action)
	if err != nil {
		var own *Error
		if errors.As(err, &own) && own.Fault != nil {
			return h.fault(v, *own.Fault)
		}
		h.log().Warn("message not processed", "action", action, "err", err)
		return h.fault(v, Fault{Code: Server, Reason: "the service failed"})
	}
	if answer == nil {
		return nil, v, http.StatusAccepted
	}
	in := *answer
	in.Version = v
	status = http.StatusOK
	if f, ok := in.Fault(); ok {
		status = FaultStatus(v, f.Code)
	}
	if reply, err = Build(&in); err != nil {
		h.log().Warn("answer not built", "action", action, "err", err)
		return h.fault(v, Fault{Code: Server, Reason: "the service failed"})
	}
	return reply, v, status
}

func (h *Handler) fault(v Version, f Fault) ([]byte, Version, int) {
	reply, err := BuildFault(v, f)
	if err != nil {
		h.log().Warn("fault not built", "err", err)
	}
	return reply, v, FaultStatus(v, f.Code)
}

func (h *Handler) log() *slog.Logger {
	if h.Log == nil {
		return slog.New(slog.DiscardHandler)
	}
	return h.Log
}

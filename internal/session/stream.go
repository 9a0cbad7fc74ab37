package session

import (
	"bytes"
	"errors"
	"net/http"
	"strings"

	"github.com/hhfr/hhfr/internal/http1"
	"github.com/hhfr/hhfr/pkg/streamer"
)

// sessionStream is one stream of a session.
type sessionStream struct {
	*negotiation // that opened it
	number       int
	lane         *streamer.Lane
	path         string // path for messages without a head
	used         usedShapes
}

// takes reports whether the peer takes a request with this head, nil for the default one, from the
// stream.
func (l *sessionStream) takes(head []byte) bool {
	if !l.onePath || head == nil {
		return true
	}
	if rest, post := bytes.CutPrefix(head, []byte("POST ")); post { // as nearly all begin
		if rest, same := bytes.CutPrefix(rest, []byte(l.path)); same && bytes.HasPrefix(rest, []byte(" HTTP/1.1\r\n")) {
			return true
		}
	}
	h, _, err := http1.ParseHead(head, 0)
	if err != nil {
		return true // that is reported elsewhere
	}
	path, _, _ := strings.Cut(string(h.Target()), "?")
	return path == l.path && string(h.Method()) == http.MethodPost
}

func isUnprocessed(err error) bool {
	if err == nil {
		return false
	}
	var e *streamer.Error
	return errors.As(err, &e) && e.Code == streamer.Unprocessed && e.Remote
}

// isMet reports whether the hello of a stream's peer has come.
func isMet(s *streamer.Stream) bool {
	select {
	case <-s.Met():
		return true
	default:
		return false
	}
}

// isRefused reports whether a stream ended before the peer's hello because a server answered: with
// a refusal, or with something that is no stream.
func isRefused(err error) bool {
	var e *streamer.Error
	return errors.As(err, &e) && (e.Remote || e.Code == streamer.Protocol)
}

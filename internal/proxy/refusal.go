package proxy

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"

	"github.com/hhfr/hhfr/internal/http1"
	"github.com/hhfr/hhfr/internal/httpmsg"
	"github.com/hhfr/hhfr/internal/session"
	"github.com/hhfr/hhfr/pkg/streamer"
)

const (
	noRoomText   = "hhfr: the far proxy has no free slot; the request was not processed"
	drainingText = "hhfr: this proxy is shutting down; the request was not sent"
)

// busyReply is the reply to a request that is refused for now: nothing of it was processed.
func busyReply(text string) []byte {
	return errorReply(http.StatusServiceUnavailable, text, fmt.Sprintf("Retry-After: %d\r\n", retryAfter))
}

// lateText is why there is no reply to a call that did not end before the proxy.
const lateText = "hhfr: this proxy ends before the reply; whether the request was processed is unknown, and it is " +
	"not sent again"

// errLate is why nothing is forwarded any more.
var errLate = errors.New("this proxy ends")

// isDraining reports whether no further call is to begin.
func (p *core) isDraining() bool { return p.draining.Load() }

// turnAway refuses a call of a near proxy, or of an endpoint that speaks hhfr itself.
func turnAway(ctx context.Context, x *streamer.Exchange, text string, itself bool) {
	head, body := line(ended), busyReply(text)
	if h, n, err := http1.ParseHead(body, 0); itself && err == nil {
		if trimmed, err := httpmsg.TrimHead(h.Octets); err == nil {
			head, body = trimmed, body[n:]
		}
	}
	_ = x.Reply(ctx, streamer.NewMessage(head, body))
}

// hints are the remedies for trouble with certificates, by the flags of the command.
var hints = map[session.Trouble]string{
	session.Untrusted: "--cacert FILE trusts those who signed it",
	session.OtherHost: "name a host of its certificate in --upstream, or give the upstream another certificate",
	session.OutOfTime: "give the upstream another certificate, or set the clock",
	session.Wanted:    "--upstream-cert FILE and --upstream-key FILE show one",
	session.Rejected:  "--upstream-cert and --upstream-key are to be of those whom the upstream trusts",
}

// noStream is why a call is refused that is to go over a stream.
type noStream struct{ why string }

func (e *noStream) Error() string { return "no stream: " + e.why }

// unreachable is the reply for an upstream that cannot be connected to.
func unreachable(err error) []byte {
	if errors.Is(err, &Error{Code: NoRoute}) {
		return errorReply(http.StatusNotFound, "hhfr: "+errors.Unwrap(err).Error())
	}
	if errors.Is(err, &Error{Code: NoRoom}) {
		return busyReply(noRoomText)
	}
	if errors.Is(err, errLate) {
		return busyReply(drainingText)
	}
	var required *noStream
	if errors.As(err, &required) {
		return busyReply("hhfr: there is no stream to the upstream (" + required.why +
			"), and --require-hhfr lets nothing go plainly; the request was not sent")
	}
	if errors.Is(err, errItself) {
		return errorReply(http.StatusBadGateway, "hhfr: "+errItself.Error()+"; the request was not sent")
	}
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, os.ErrDeadlineExceeded) {
		return errorReply(http.StatusGatewayTimeout,
			"hhfr: the upstream did not accept a connection in time; the request was not sent")
	}
	var wrong *session.SchemeError
	if errors.As(err, &wrong) {
		text := "hhfr: no connection to the upstream: " + wrong.Error() + "; the request was not sent"
		return errorReply(http.StatusBadGateway, text)
	}
	if trouble := session.TroubleOf(err); trouble != 0 {
		fate := "sent"
		if trouble == session.Wanted || trouble == session.Rejected {
			fate = "processed" // it was in transit when the server reported it
		}
		text := "hhfr: no connection to the upstream: " + trouble.String() + "; the request was not " + fate
		return errorReply(http.StatusBadGateway, text)
	}
	return errorReply(http.StatusBadGateway, "hhfr: no connection to the upstream; the request was not sent")
}

// noRoute is why a request goes nowhere.
func (p *core) noRoute(host, path string) error {
	err := fmt.Errorf("no route of this proxy's configuration takes host %q and path %q; the request was not sent",
		host, path)
	p.cfg.Log.Info("no route", "host", host, "path", path)
	return &Error{Code: NoRoute, Err: err}
}

// errorReply is a proxy's own reply to a client whose connection it then closes.
func errorReply(status int, text string, fields ...string) []byte {
	return fmt.Appendf(nil, "HTTP/1.1 %d %s\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: %d\r\n%s"+
		"Connection: close\r\n\r\n%s\n", status, http.StatusText(status), len(text)+1, strings.Join(fields, ""), text)
}

// errItself is why no connection is opened to a listener of this proxy: each of its calls would be
// another client's, until there is room for none.
var errItself = errors.New("the upstream is this proxy itself")

// invalidText is why a request is refused whose body is not valid.
const invalidText = "hhfr: the body of this request is not valid; it was not sent whole"

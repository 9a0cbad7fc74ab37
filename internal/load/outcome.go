package load

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"syscall"

	"github.com/hhfr/hhfr"
	"github.com/hhfr/hhfr/pkg/soap"
)

// What can become of a request besides the right answer.
const (
	refused     = "refused"      // no connection
	reset       = "reset"        // the connection ended before the whole answer was there
	timedOut    = "timed out"    // no whole answer in time
	faulted     = "fault"        // a SOAP fault
	wrongAnswer = "wrong answer" // an answer, but not that of the question
	wrongStatus = "status"       // an HTTP status that is neither success nor that of a fault
	otherError  = "other"        // whatever else
)

// outcome is the kind of error that came of a request, and what it says; both empty: the answer is
// right.
func outcome(q *question, a answered, err error) (kind, text string) {
	switch {
	case err != nil:
		return kindOf(err), err.Error()
	case soap.IsFault(a.body) && (a.status == http.StatusOK || a.status == http.StatusInternalServerError ||
		a.status == http.StatusBadRequest):
		if q.right == nil {
			return "", ""
		}
		return faulted, start(a.body)
	case a.status < 200 || a.status > 299:
		return wrongStatus, fmt.Sprintf("%d: %s", a.status, start(a.body))
	case q.right == nil || !q.right(a.body):
		return wrongAnswer, fmt.Sprintf("to %s: %s", q.body, start(a.body))
	}
	return "", ""
}

// start is the beginning of an answer.
func start(body []byte) string { return fmt.Sprintf("%.500s", body) }

// closedIdle is what net/http calls a connection that the server ended before the request was
// there; the error has no name.
const closedIdle = "server closed idle connection"

func kindOf(err error) string {
	var dialing *net.OpError
	var unresolved *net.DNSError
	var ours *hhfr.Error
	switch {
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded):
		return timedOut
	case errors.As(err, &unresolved), errors.Is(err, syscall.EADDRNOTAVAIL), errors.Is(err, syscall.EMFILE):
		return otherError // of this machine
	case errors.As(err, &dialing) && dialing.Op == "dial":
		return refused
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.ECONNRESET),
		errors.Is(err, syscall.EPIPE), errors.Is(err, net.ErrClosed), errors.As(err, &dialing),
		strings.Contains(err.Error(), closedIdle):
		return reset
	case !errors.As(err, &ours):
		return otherError
	case ours.Code == hhfr.Unreachable, ours.Code == hhfr.Refused:
		return refused
	case ours.Code == hhfr.FateUnknown, ours.Code == hhfr.Unsent:
		return reset
	}
	return otherError
}

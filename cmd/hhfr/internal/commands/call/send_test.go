package call

import (
	"errors"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/cmd/hhfr/internal/exit"
	"github.com/hhfr/hhfr/internal/soapjms"
	"github.com/hhfr/hhfr/internal/wsdl"
	"github.com/hhfr/hhfr/pkg/soap"
)

// failedQueue is a queue whose broker may have the request, or has not.
type failedQueue struct {
	has bool
	err error
}

func (q *failedQueue) RoundTrip(r *http.Request) (*http.Response, error) {
	if q.has {
		httptrace.ContextClientTrace(r.Context()).GotConn(httptrace.GotConnInfo{})
	}
	return nil, q.err
}

func TestExitCodesOfQueues(t *testing.T) {
	failed := func(code soapjms.Code) error { return &soapjms.Error{Code: code, Err: errors.New("so it is")} }
	for name, c := range map[string]struct {
		queue failedQueue
		code  int
	}{
		"a reply that cannot be read":     {failedQueue{true, failed(soapjms.Malformed)}, exit.Partial},
		"no reply":                        {failedQueue{true, failed(soapjms.NoReply)}, exit.Partial},
		"no broker":                       {failedQueue{false, failed(soapjms.Unreachable)}, exit.NoPeer},
		"a broker that is gone meanwhile": {failedQueue{true, failed(soapjms.Unreachable)}, exit.Partial},
	} {
		t.Run(name, func(t *testing.T) {
			op := &calledOperation{Operation: &wsdl.Operation{}, url: &url.URL{Scheme: "http", Host: "queue"}}
			s := &callSender{op: op, version: soap.V11, http: &http.Client{Transport: &c.queue}}
			_, err := s.call(t.Context(), []byte("<a/>"))
			require.ErrorContains(t, err, "so it is")
			code, _ := exit.CodeOf(err)
			assert.Equal(t, c.code, code)
		})
	}
}

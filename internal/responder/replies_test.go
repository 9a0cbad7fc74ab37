package responder_test

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/responder"
	"github.com/hhfr/hhfr/pkg/negotiate"
)

func writing(text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, text) }
}

// What services of net/http write arrives over a stream as it would in plain SOAP.
func TestReplies(t *testing.T) {
	long := strings.Repeat("<a>long</a>", 10<<10)
	for name, tc := range map[string]struct {
		service http.HandlerFunc
		status  string // of the reply; empty: there is none
		body    string
	}{
		"nothing": {func(http.ResponseWriter, *http.Request) {}, "200 OK", ""},
		"status": {func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusAccepted)
		}, "202 Accepted", ""},
		"short": {writing("<a/>"), "200 OK", "<a/>"},
		"long":  {writing(long), "200 OK", long},
		"in pieces": {func(w http.ResponseWriter, _ *http.Request) {
			for _, piece := range []string{"<a>", "b", "</a>"} {
				_, _ = io.WriteString(w, piece)
				assert.NoError(t, http.NewResponseController(w).Flush())
			}
		}, "200 OK", "<a>b</a>"},
		"copied": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/xml")
			_, _ = io.Copy(w, strings.NewReader(long))
		}, "200 OK", long},
		"interim": {func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusEarlyHints)
			w.WriteHeader(http.StatusInternalServerError)
			_, _ = io.WriteString(w, "<fault/>")
		}, "500 Internal Server Error", "<fault/>"},
		"no body": {func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusNoContent)
			_, err := io.WriteString(w, "<a/>")
			assert.ErrorIs(t, err, http.ErrBodyNotAllowed)
		}, "204 No Content", ""},
		"too long": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "4")
			_, _ = io.WriteString(w, "<a/>")
			_, err := io.WriteString(w, "<b/>")
			assert.ErrorIs(t, err, http.ErrContentLength)
		}, "200 OK", "<a/>"},
		"too short": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "9")
			_, _ = io.WriteString(w, "<a/>")
		}, "", ""},
		"panics":       {func(http.ResponseWriter, *http.Request) { panic("oh") }, "", ""},
		"panics aloud": {func(http.ResponseWriter, *http.Request) { panic(errors.New("oh")) }, "", ""},
		"breaks off": {func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, "<half")
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		}, "broken", ""},
	} {
		t.Run(name, func(t *testing.T) {
			e := start(t, tc.service, nil)
			a := e.agree(t, anOffer())
			s, err := e.open(t, hello(a.Session, a.Token[:]))
			require.NoError(t, err)
			head, body, err := call(t, s, requestHead, "<q/>")
			if tc.status == "" || tc.status == "broken" {
				require.Error(t, err)
			} else {
				require.NoError(t, err)
				assert.True(t, strings.HasPrefix(head, "HTTP/1.1 "+tc.status+"\r\n"), head)
				assert.Equal(t, tc.body, body)
			}
			assert.False(t, s.Over(), "the stream goes on")
		})
	}
}

// A configuration that cannot be is refused.
func TestBadConfig(t *testing.T) {
	_, err := responder.New(responder.Config{})
	var e *negotiate.Error
	require.ErrorAs(t, err, &e)
	assert.Equal(t, negotiate.BadConfig, e.Code)
	_, err = responder.NewHandler(http.NotFoundHandler(),
		responder.Config{Addresses: map[string]string{"pigeon": ":1"}})
	require.ErrorContains(t, err, `unknown transport "pigeon"`)
	_, err = responder.NewHandler(http.NotFoundHandler(), responder.Config{Representations: []string{"runes"}})
	require.ErrorContains(t, err, "runes")
}

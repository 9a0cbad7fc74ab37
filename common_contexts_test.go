package hhfr_test

import (
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr"
	"github.com/hhfr/hhfr/pkg/ctxstore/memory"
)

// What cannot be a common store, or go there, is an error that says so, at whichever peer.
func TestCommonContextsRefused(t *testing.T) {
	store := memory.New(memory.Config{})
	const wsse = "{http://docs.oasis-open.org/wss/2004/01/oasis-200401-wss-wssecurity-secext-1.0.xsd}Security"
	for why, common := range map[string]*hhfr.CommonContexts{
		"needs a URL and a Store": {URL: "http://127.0.0.1:1/"},
		"needs a URL":             {Store: store},
		"byte 0x0a":               {URL: "http://127.0.0.1:1/\n", Store: store},
		"is not {namespace}name":  {URL: "http://127.0.0.1:1/", Store: store, Headers: []string{"Device"}},
		"may hold a secret":       {URL: "http://127.0.0.1:1/", Store: store, Headers: []string{wsse}},
	} {
		var e *hhfr.Error
		_, err := hhfr.Dial(t.Context(), "http://127.0.0.1:1/", &hhfr.Config{Common: common})
		require.ErrorAs(t, err, &e, why)
		assert.Equal(t, hhfr.Invalid, e.Code)
		assert.ErrorContains(t, err, why)

		l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
		require.NoError(t, err)
		assert.ErrorContains(t, (&hhfr.Server{Handler: echo, Common: common}).Serve(l), why)

		w := httptest.NewRecorder()
		h := &hhfr.Handler{Handler: echo, Common: common}
		h.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/", strings.NewReader("<x/>")))
		assert.Equal(t, http.StatusInternalServerError, w.Code)
		assert.ErrorContains(t, h.Close(), why)
	}
	_, err := hhfr.Dial(t.Context(), "http://127.0.0.1:1/", &hhfr.Config{Unchanging: []string{"no element"}})
	assert.ErrorContains(t, err, "header block")
}

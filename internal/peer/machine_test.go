package peer_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/experiment"
	"github.com/hhfr/hhfr/internal/peer"
)

// A machine is told of where that is asked for, and nowhere else.
func TestServersTellOfTheirMachine(t *testing.T) {
	services, err := peer.NewServices(peer.Echo())
	require.NoError(t, err)
	telling := services.Telling(func() experiment.Computer { return experiment.Computer{System: "linux/arm"} })
	get := func(h http.Handler, method, path string) *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(method, path, nil))
		return w
	}
	w := get(telling, http.MethodGet, "/machine")
	assert.Equal(t, http.StatusOK, w.Code)
	assert.Equal(t, "application/json", w.Header().Get("Content-Type"))
	assert.JSONEq(t, `{"program":"","go":"","system":"linux/arm","processors":0}`, w.Body.String())
	assert.Equal(t, http.StatusNotFound, get(telling, http.MethodPost, "/machine").Code)
	assert.Equal(t, http.StatusNotFound, get(telling, http.MethodGet, "/echo/machine").Code)
	assert.Equal(t, http.StatusNotFound, get(services, http.MethodGet, "/machine").Code)
}

package screen

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	tea "charm.land/bubbletea/v2"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A request is sent again with what it had, from its reply too, and the replies are beside each
// other.
func TestSendAgain(t *testing.T) {
	const begin = `<s:Envelope xmlns:s="http://schemas.xmlsoap.org/soap/envelope/"><s:Body>`
	const envelope = begin + `<a>1</a></s:Body></s:Envelope>`
	answer, got, field := envelope, "", ""
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		assert.NoError(t, err)
		got, field = string(body), r.Header.Get("X-Number")
		w.Header().Set("Content-Type", "text/xml")
		_, _ = io.WriteString(w, answer)
	}))
	defer server.Close()
	defer http.DefaultClient.CloseIdleConnections()
	m := made(t, false, envelope, envelope, envelope)
	send := func(to string) {
		keys(m, "r")
		require.NotNil(t, m.prompt, m.said)
		assert.Contains(t, check(t, m), "http://10.0.0.1:80/", "the recorded address")
		m.Update(tea.KeyPressMsg{Code: 'u', Mod: tea.ModCtrl})
		m.Update(tea.PasteMsg{Content: to})
		_, cmd := m.Update(tea.KeyPressMsg{Code: tea.KeyEnter})
		if cmd != nil {
			m.Update(cmd())
		}
	}
	send(server.URL)
	assert.Equal(t, "the reply is that which was recorded, byte for byte", m.said)
	assert.Equal(t, []string{envelope, "0"}, []string{got, field})
	check(t, m)

	answer = begin + `<a>2</a></s:Body></s:Envelope>`
	keys(m, "esc", "j")
	send(server.URL)
	assert.Contains(t, m.said, "the reply differs from byte 75 on")
	assert.Contains(t, check(t, m), "1 reply, recorded")

	keys(m, "esc", "j")
	send(server.URL)
	assert.Equal(t, "no reply is recorded to compare with", m.said)
	keys(m, "esc")
	send("here")
	assert.Contains(t, check(t, m), `"here" is no http or https URL`)
	keys(m, "esc")
	server.Close()
	send(server.URL)
	assert.Contains(t, m.said, "refused")
}

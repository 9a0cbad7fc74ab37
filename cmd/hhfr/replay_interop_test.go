//go:build interop

package main

import (
	"crypto/sha1"
	"encoding/base64"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/beevik/etree"
	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/shared"
)

// guardedSum is a service that adds numbers for whoever proves to know the password, with a token
// that it has not seen, and a timestamp of now. Replies have ids and times of their own.
type guardedSum struct {
	mu    sync.Mutex
	seen  map[string]bool // nonces
	calls int
	wrong int // the call whose result is another
}

const guardedReply = `<e:Envelope xmlns:e="http://schemas.xmlsoap.org/soap/envelope/"><e:Header>` +
	`<a:MessageID xmlns:a="http://www.w3.org/2005/08/addressing">urn:uuid:%s</a:MessageID>` +
	`<a:RelatesTo xmlns:a="http://www.w3.org/2005/08/addressing">%s</a:RelatesTo>` +
	`<w:Security xmlns:w="http://docs.oasis-open.org/wss/2004/01/oasis-200401-wss-wssecurity-secext-1.0.xsd">` +
	`<u:Timestamp xmlns:u="http://docs.oasis-open.org/wss/2004/01/oasis-200401-wss-wssecurity-utility-1.0.xsd">` +
	`<u:Created>%s</u:Created><u:Expires>%s</u:Expires></u:Timestamp></w:Security></e:Header>` +
	`<e:Body><sumResponse xmlns="urn:hhfr:peer:1"><result>%g</result></sumResponse></e:Body></e:Envelope>`

func (s *guardedSum) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	doc := etree.NewDocument()
	body, err := io.ReadAll(r.Body)
	if err == nil {
		err = doc.ReadFromBytes(body)
	}
	text := func(path string) string {
		if e := doc.FindElement(path); e != nil {
			return e.Text()
		}
		return ""
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls++
	nonce := text("//Nonce")
	raw, _ := base64.StdEncoding.DecodeString(nonce)
	digest := sha1.Sum([]byte(string(raw) + text("//UsernameToken/Created") + "secret"))
	created, timeErr := time.Parse(time.RFC3339Nano, text("//Timestamp/Created"))
	w.Header().Set("Content-Type", "text/xml; charset=utf-8")
	if err != nil || timeErr != nil || time.Since(created).Abs() > time.Minute || s.seen[nonce] ||
		text("//Password") != base64.StdEncoding.EncodeToString(digest[:]) {
		w.WriteHeader(http.StatusInternalServerError)
		_, _ = io.WriteString(w, `<e:Envelope xmlns:e="http://schemas.xmlsoap.org/soap/envelope/"><e:Body><e:Fault>`+
			`<faultcode>e:Client</faultcode><faultstring>not let in</faultstring></e:Fault></e:Body></e:Envelope>`)
		return
	}
	s.seen[nonce] = true
	sum := 0.0
	for _, e := range doc.FindElements("//item") {
		var n float64
		_, _ = fmt.Sscan(e.Text(), &n)
		sum += n
	}
	if s.calls == s.wrong {
		sum++
	}
	now := time.Now().UTC()
	_, _ = fmt.Fprintf(w, guardedReply, uuid.NewString(), text("//MessageID"), now.Format(time.RFC3339Nano),
		now.Add(time.Minute).Format(time.RFC3339Nano), sum)
}

// TestInteropReplayOfZeep: a session of zeep with ids, tokens and timestamps, captured and sent
// again, differs in nothing but them; where one result is another, exactly that is told.
func TestInteropReplayOfZeep(t *testing.T) {
	dir := t.TempDir()
	build := exec.CommandContext(t.Context(), "sh", shared.Testdata(t, "interop", "stacks", "build.sh"), dir, "python")
	said, err := build.CombinedOutput()
	require.NoError(t, err, string(said))

	service := &guardedSum{seen: map[string]bool{}}
	l, err := net.Listen("tcp", "127.61.1.1:0")
	require.NoError(t, err)
	server := &httptest.Server{Listener: l, Config: &http.Server{Handler: service}}
	server.Start()
	defer server.Close()
	services, stop := servicesHere(t)
	wsdl := filepath.Join(dir, "sum.wsdl")
	resp, err := http.Get(services["sum"].WSDL)
	require.NoError(t, err)
	described, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	stop()
	here := strings.ReplaceAll(string(described), services["sum"].URL, server.URL)
	require.NoError(t, os.WriteFile(wsdl, []byte(here), 0o600))

	capture := capturedByDumpcap(t, "127.61.1.1", func() {
		zeep := exec.CommandContext(t.Context(), filepath.Join(dir, "venv", "bin", "python"),
			shared.Testdata(t, "interop", "replay", "zeep_session.py"), wsdl)
		said, err := zeep.CombinedOutput()
		require.NoError(t, err, string(said))
		require.Equal(t, 20, strings.Count(string(said), ".5\n"), string(said))
	})
	password := filepath.Join(dir, "password")
	require.NoError(t, os.WriteFile(password, []byte("secret\n"), 0o600))
	replay := []string{"replay", capture, "--to", server.URL, "--as", "soap", "--ignore", "ids", "--ignore", "times"}
	anew := append(replay, "--user", "alice", "--password-file", password, "--wss", "digest")

	code, out, stderr := do(t, anew...)
	assert.Zero(t, code, stderr)
	assert.Empty(t, out)
	assert.Contains(t, stderr, "20 requests sent")
	assert.Equal(t, 40, service.calls)

	service.wrong = 40 + 7
	code, out, _ = do(t, anew...)
	assert.Equal(t, 1, code)
	assert.Equal(t, "exchange 7 (sum): reply differs at 1 place\n  /Envelope/Body/sumResponse/result\n"+
		"    recorded  6.5\n    now       7.5\n", out)

	// Without credentials tokens are as they were: a guarded service lets none in.
	code, out, _ = do(t, replay...)
	assert.Equal(t, 1, code)
	assert.Equal(t, 20, strings.Count(out, " (sum): status differs\n  recorded  200\n"+
		"  now       500, fault Client: not let in\n"))
}

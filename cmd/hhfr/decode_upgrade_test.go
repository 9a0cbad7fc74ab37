package main

import (
	"bytes"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/cmd/hhfr/internal/exit"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/listing"
	"github.com/hhfr/hhfr/internal/pcapng"
	"github.com/hhfr/hhfr/internal/shared"
)

// An upgraded request and its reply on the stream are one exchange in lists, reports and files. The
// bytes of the stream alone give the reply under the same number. No output has the token by which
// the session can be joined next.
func TestDecodeUpgraded(t *testing.T) {
	file := shared.Testdata(t, "pcap", "upgraded.pcapng")
	dir, raw, again := t.TempDir(), t.TempDir(), t.TempDir()
	code, out, stderr := do(t, "decode", file, "--save-dir", dir, "--write-streams", raw)
	require.Equal(t, exit.Done, code, stderr)
	rows := strings.Split(out, "\n")
	require.Regexp(t, `^ +1 \S+ \S+ +-> \S+ +- +1 request +\S+ +\d+ +\d+ +unchecked$`, rows[1])
	require.Regexp(t, `^ +1 \S+ \S+ +<- \S+ +05000000 +1 reply +\S+ +\d+ +\d+ +200 +724 us +verified$`, rows[2])
	require.Regexp(t, `^ +2 \S+ \S+ +-> \S+ +05000000 +2 request +\S+ +\d+ +\d+ +verified$`, rows[3])
	assert.Contains(t, stderr, "1 stream, 32 messages, 31 verified, 1 unchecked")

	files, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, files, 32)
	streams, err := filepath.Glob(filepath.Join(raw, "*.bin"))
	require.NoError(t, err)
	code, _, stderr = do(t, append([]string{"reconstruct", "--save-dir", again}, streams...)...)
	require.Equal(t, exit.Done, code, stderr)
	for _, f := range files {
		if f.Name() == "000001-request.xml" {
			assert.NoFileExists(t, filepath.Join(again, f.Name()), "it is not of the stream")
			continue
		}
		want := shared.Read(t, filepath.Join(dir, f.Name()))
		require.Equal(t, want, shared.Read(t, filepath.Join(again, f.Name())), f.Name())
	}

	for _, form := range []string{"text", "json", "jsonl", "xml"} {
		code, out, stderr := do(t, "decode", file, "-v", "-o", form)
		require.Equal(t, exit.Done, code, stderr)
		for _, token := range []string{"the next token 1", "746865206e657874", "dGhlIG5leHQgdG9rZW4g"} {
			assert.NotContains(t, out+stderr, token, form)
		}
	}
	_, out, _ = do(t, "decode", file, "-o", "json")
	var r listing.DecodeReport
	require.NoError(t, json.Unmarshal([]byte(out), &r))
	assert.Equal(t, "/service", r.Streams[0].Path)
}

// An upgraded connection on which nothing followed is reported.
func TestDecodeUpgradedWithoutHello(t *testing.T) {
	file := shared.Read(t, shared.Testdata(t, "pcap", "upgraded.pcapng"))
	at := bytes.Index(file, []byte("\x01HHFR/1\n"))
	require.Positive(t, at)
	short := filepath.Join(t.TempDir(), "short.pcapng")
	require.NoError(t, os.WriteFile(short, file[:at-200], 0o600)) // the request alone
	code, out, _ := do(t, "decode", short)
	assert.Equal(t, exit.Partial, code)
	assert.Contains(t, out, "request")

	var cut bytes.Buffer
	rec := pcapng.NewRecorder(&cut, time.Now)
	client, server := net.Pipe()
	c := rec.Conn(client)
	const fields = "Connection: Upgrade\r\nUpgrade: hhfr/1\r\n"
	for _, turn := range []string{"POST / HTTP/1.1\r\n" + fields +
		"Content-Type: text/xml\r\nContent-Length: 4\r\n\r\n<a/>",
		"HTTP/1.1 101 Switching Protocols\r\n" + fields + "\r\n"} {
		from, to := net.Conn(c), server
		if strings.HasPrefix(turn, "HTTP") {
			from, to = server, c
		}
		done := make(chan error, 1)
		go func() { _, err := io.WriteString(from, turn); done <- err }()
		_, err := io.ReadFull(to, make([]byte, len(turn)))
		require.NoError(t, err)
		require.NoError(t, <-done)
	}
	require.NoError(t, c.Close())
	require.NoError(t, rec.Close())
	require.NoError(t, os.WriteFile(short, cut.Bytes(), 0o600))
	code, _, stderr := do(t, "decode", short)
	assert.Equal(t, exit.Partial, code)
	assert.Contains(t, stderr, "1 connection upgraded to hhfr, and no hello came after")
}

// The field that offers a stream beside a reply is an ordinary one: lists do not show it.
func TestTokensOfFieldsAreNotListed(t *testing.T) {
	const token = "00112233445566778899aabbccddeeff"
	const envelope = `<s:Envelope xmlns:s="http://schemas.xmlsoap.org/soap/envelope/"><s:Body><m/></s:Body>` +
		`</s:Envelope>`
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header()["HHFR"] = []string{`1;address=":8443";session="urn:uuid:05000000-0000-0000-0000-000000000000"` +
			`;token="` + token + `";lifetime=3600;transport=tls`}
		_, _ = io.WriteString(w, envelope)
	}))
	defer service.Close()
	var recorded bytes.Buffer
	rec := pcapng.NewRecorder(&recorded, time.Now)
	client := &http.Client{Transport: &http.Transport{DialContext: rec.DialContext((&net.Dialer{}).DialContext)}}
	reply, err := client.Post(service.URL, "text/xml", strings.NewReader(envelope))
	require.NoError(t, err)
	_, err = io.Copy(io.Discard, reply.Body)
	require.NoError(t, err)
	require.NoError(t, reply.Body.Close())
	client.CloseIdleConnections()
	service.Close()
	require.NoError(t, rec.Close())
	file := filepath.Join(t.TempDir(), "c.pcapng")
	require.NoError(t, os.WriteFile(file, recorded.Bytes(), 0o600))
	for _, form := range []string{"text", "xml"} {
		code, out, stderr := do(t, "decode", "-v", "-o", form, file)
		require.Equal(t, exit.Done, code, stderr)
		assert.NotContains(t, out+stderr, token)
	}
	_, out, _ := do(t, "decode", "-o", "json", file)
	var r listing.DecodeReport
	require.NoError(t, json.Unmarshal([]byte(out), &r))
	assert.Contains(t, string(r.Messages[1].Head), "HHFR: 1;address", "the head as it was received")
}

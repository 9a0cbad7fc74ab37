package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
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

	"github.com/hhfr/hhfr/cmd/hhfr/internal/command"
	"github.com/hhfr/hhfr/internal/shared"
)

// keyTypes notes the JSON type of each key of log lines.
type keyTypes map[string]string

// take checks lines: each is an object, whose keys have values of the types that they have had
// before.
func (k keyTypes) take(t *testing.T, stderr string) (messages []string) {
	t.Helper()
	for line := range strings.Lines(stderr) {
		var fields map[string]any
		require.NoError(t, json.Unmarshal([]byte(line), &fields), "%q", line)
		messages = append(messages, fmt.Sprint(fields["msg"]))
		for _, key := range []string{"time", "level", "msg"} {
			assert.IsType(t, "", fields[key], "%q", line)
		}
		for key, value := range fields {
			kind := fmt.Sprintf("%T", value)
			if k[key] == "" {
				k[key] = kind
			}
			assert.Equal(t, k[key], kind, "%s in %q", key, line)
			assert.Contains(t, []string{"string", "float64", "bool"}, kind, "%s in %q", key, line)
		}
	}
	return messages
}

// TestLogLinesAreJSON: with --log-format json, at any position, every line on stderr of every
// command is an object, and a key has values of one type.
func TestLogLinesAreJSON(t *testing.T) {
	dir := t.TempDir()
	message, recording := shared.Testdata(t, "soap", "cwmp-inform.xml"), shared.Testdata(t, "pcap", "session.pcapng")
	config := filepath.Join(dir, "hhfr.conf")
	require.NoError(t, os.WriteFile(config, []byte("log-format = json\n"), 0o600))
	url, stop := serveHere(t)
	defer stop()
	plain := httptest.NewServer(http.NotFoundHandler())
	defer plain.Close()
	keys := keyTypes{}
	for _, args := range [][]string{
		{"frobnicate"}, {"stream"}, {"stream", "--no-such-flag"}, {"bench", "session", "--n", "abc"},
		{"decode", "none.pcap"}, {"decode", "a", "b"}, {"serve", "--listen", "nonsense"},
		{"stream", url, message, "--record", filepath.Join(dir, "session.pcapng")},
		{"stream", url, message, "-v", "--transport", "udp"}, {"stream", plain.URL, message, "-v"},
		{"stream", url, message, "--assurance", "at-least-once", "--resume", "-v"},
		{"stream", "https://" + strings.TrimPrefix(plain.URL, "http://"), message},
		{"stream", "http://127.0.0.1:1/", message}, {"stream", url, "-"},
		{"negotiate", url, "-v"}, {"negotiate", plain.URL, "-v", "--require-hhfr"},
		{"decode", recording}, {"decode", recording, "-v"}, {"reconstruct", message},
		{"transcode", message, "--out", filepath.Join(dir, "packed.hhfr")}, {"replay", recording, "--to", plain.URL},
	} {
		_, _, text := do(t, args...)
		_, _, stderr := do(t, append([]string{"--log-format", "json"}, args...)...)
		lines := strings.Count(text, "\n") - strings.Count(text, "hhfr: hint: ")
		assert.Len(t, keys.take(t, stderr), lines, "%q\n%s", args, text)
	}
	wrong := []string{"decode", "a", "b", "--no-such-flag"}
	for _, where := range [][]string{
		append(wrong, "--log-format=json"), append([]string{"--config", config}, wrong...),
		append(wrong, "--config="+config),
	} {
		_, _, stderr := do(t, where...)
		assert.Equal(t, []string{"unknown flag: --no-such-flag"}, keys.take(t, stderr), "%q", where)
	}
	t.Setenv("HHFR_LOG_FORMAT", "json")
	_, _, stderr := do(t, "decode", "--no-such-flag")
	keys.take(t, stderr)
	_, _, stderr = do(t, "decode", "--no-such-flag", "--log-format", "text")
	assert.Contains(t, stderr, "hhfr: error: ")
	assert.Equal(t, "float64", keys["exit_code"])
	assert.Equal(t, "string", keys["hint"])
}

// TestServersLogJSON: the same holds for servers while they run, and when they end.
func TestServersLogJSON(t *testing.T) {
	cert, key := certificate(t, t.TempDir(), testCertificate(t)[0])
	keys := keyTypes{}
	services, ended := startLogged(t, "serve")
	far, farEnded := startLogged(t, "proxy", "--upstream", "http://"+services)
	near, nearEnded := startLogged(t, "proxy", "--upstream", "http://"+far, "--cert", cert, "--key", key)
	alone, aloneEnded := startLogged(t, "proxy", "--upstream", "http://127.0.0.1"+closedPort(t), "--tcp", "none")

	message := shared.Testdata(t, "soap", "cwmp-inform.xml")
	code, _, stderr := do(t, "stream", "https://"+near+"/echo", message, "--insecure-skip-verify", "--log-format",
		"json", "-v")
	require.Zero(t, code, stderr)
	keys.take(t, stderr)
	do(t, "stream", "http://"+services+"/echo", message, "--require-hhfr")
	for _, address := range []string{near, alone} { // no TLS, no upstream
		resp, err := http.Post("http://"+address+"/echo", "text/xml", strings.NewReader(envelope(1)))
		require.NoError(t, err)
		_, _ = io.Copy(io.Discard, resp.Body)
		require.NoError(t, resp.Body.Close())
	}
	http.DefaultClient.CloseIdleConnections()
	var all []string
	for _, end := range []func() string{nearEnded, farEnded, aloneEnded, ended} {
		all = append(all, keys.take(t, end())...)
	}
	assert.Subset(t, all, []string{
		"stream", "handshake", "upstream", "plain", "shutting down",
		"shutting down after the calls in progress; a second signal ends at once",
	})
	assert.Equal(t, "string", keys["peer"])
}

// startLogged runs a server that logs everything as JSON; end returns the log. address is the one
// for clients.
func startLogged(t *testing.T, args ...string) (address string, end func() string) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	said, done := firstLine{make(chan []byte, 1)}, make(chan int, 1)
	var errs bytes.Buffer
	args = append(args, "--listen", "127.0.0.1:0", "-o", "json", "-v", "--log-format", "json")
	to, toErr := keeping(args, said, &errs)
	go func() { done <- execute(ctx, command.Env{Out: to, Err: toErr}, args) }()
	var first struct{ Addresses map[string]string }
	require.NoError(t, json.Unmarshal(<-said.lines, &first))
	return first.Addresses["http"], func() string {
		cancel()
		require.Zero(t, <-done, "%s", &errs)
		return errs.String()
	}
}

// What the standard library logs is printed like everything else.
func TestStandardLog(t *testing.T) {
	var out, errs bytes.Buffer
	var log *slog.Logger
	env := command.Env{Out: &out, Err: &errs, SetLog: func(l *slog.Logger) { log = l }}
	require.Zero(t, execute(t.Context(), env, []string{"version", "-v", "--log-format", "json"}))
	require.NotNil(t, log)
	slog.NewLogLogger(log.Handler(), slog.LevelInfo).Print("net/http has something to say")
	assert.Equal(t, []string{"net/http has something to say"}, keyTypes{}.take(t, errs.String()))
}

// Values that packages log under a key may be of any type; printed values are not.
func TestPlainValue(t *testing.T) {
	var out bytes.Buffer
	log := (&command.Global{LogFormat: "json", Stderr: &out}).Logger()
	log.Warn("w", "peer", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 7}, "err", io.EOF, "for", time.Minute,
		"limit", 3, "remote", true, "panic", []int{1}, slog.Any("none", nil))
	var fields map[string]any
	require.NoError(t, json.Unmarshal(out.Bytes(), &fields))
	delete(fields, "time")
	assert.Equal(t, map[string]any{
		"level": "WARN", "msg": "w", "peer": "127.0.0.1:7", "err": "EOF", "for": "1m0s",
		"limit": 3., "remote": true, "panic": "[1]", "none": nil,
	}, fields)
}

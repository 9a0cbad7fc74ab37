package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/cmd/hhfr/internal/cmdline"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/commands/replay"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/exit"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/listing"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/results"
	"github.com/hhfr/hhfr/internal/codec/binary"
	"github.com/hhfr/hhfr/internal/coders"
	"github.com/hhfr/hhfr/internal/frame"
	"github.com/hhfr/hhfr/internal/peer"
	"github.com/hhfr/hhfr/internal/resolve"
	"github.com/hhfr/hhfr/internal/shared"
	"github.com/hhfr/hhfr/pkg/ctxstore"
	"github.com/hhfr/hhfr/pkg/ctxstore/memory"
	"github.com/hhfr/hhfr/pkg/streamer"
	"github.com/hhfr/hhfr/pkg/wsrm/header"
)

// TestPlacesAsJSON: what a frame says of the place of its message is in the report.
func TestPlacesAsJSON(t *testing.T) {
	hello := frame.Hello{
		Token: make([]byte, frame.TokenLen), Representation: frame.XML, Limits: frame.Limits{MaxFragment: 512},
	}
	octets := hello.AppendTo(nil)
	for i, p := range []frame.Place{
		{Number: 1, Length: 20, From: 12}, {Number: 2, Wanted: true}, {Number: 3, Answers: 7, Unknown: true},
	} {
		payload := []byte("\x00") // under no shape
		if !p.Unknown {
			payload = append(payload, "<a>rest</a>"...)[:1+8]
		}
		octets = frame.Data{First: true, Last: true, OneWay: true, Place: p, Exchange: uint64(i),
			Payload: payload}.AppendTo(octets)
	}
	file := filepath.Join(t.TempDir(), "placed.bin")
	require.NoError(t, os.WriteFile(file, octets, 0o600))
	_, out, stderr := do(t, "reconstruct", file, "-o", "json")
	var r listing.DecodeReport
	require.NoError(t, json.Unmarshal([]byte(out), &r), stderr)
	require.Len(t, r.Messages, 3, out)
	assert.Equal(t, &listing.PlaceReport{Number: 1, Length: 20, From: 12}, r.Messages[0].Place)
	assert.Equal(t, &listing.PlaceReport{Number: 2, Wanted: true}, r.Messages[1].Place)
	assert.Equal(t, &listing.PlaceReport{Number: 3, Answers: 7, Unknown: true}, r.Messages[2].Place)
}

// TestSequencesLeftOutAsJSON: sequences beyond those that are followed are counted.
func TestSequencesLeftOutAsJSON(t *testing.T) {
	var b header.Blocks
	for i := range 1030 {
		b.Acknowledgements = append(b.Acknowledgements,
			header.Acknowledgement{Sequence: fmt.Sprint("urn:s:", i), None: true})
	}
	_, out, stderr := do(t, "decode", saidOfSequences(t, b), "-o", "json")
	var r listing.DecodeReport
	require.NoError(t, json.Unmarshal([]byte(out), &r), stderr)
	assert.Equal(t, 6, r.SequencesLeftOut, stderr)
}

// TestServerInitiatedHeads: the head of a server-initiated message is printed with it.
func TestServerInitiatedHeads(t *testing.T) {
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	echo := peer.Echo()
	const head = "POST /x HTTP/1.1\r\nX-Trace: 1\r\n\r\n"
	echo.Attend = func(ctx context.Context, stream *streamer.Stream) {
		_ = stream.Lane(0).Send(ctx, streamer.NewMessage([]byte(head), []byte("<a/>"))) // the client is gone
	}
	services, err := peer.NewServices(echo)
	require.NoError(t, err)
	store := memory.New(memory.Config{})
	server, err := peer.Start(peer.Config{
		HTTP: l, Services: services, Store: store, Coders: coders.OfBook(binary.NewBook(ctxstore.Shapes{Store: store})),
	})
	require.NoError(t, err)
	_, out, stderr := do(t, "stream", "http://"+l.Addr().String()+peer.EchoPath, "--listen", "--timeout", "1s", "-o",
		"json")
	line, _, _ := bytes.Cut([]byte(out), []byte("\n"))
	var m results.ServerMessage
	require.NoError(t, json.Unmarshal(line, &m), "%s%s", out, stderr)
	assert.Equal(t, head, string(m.Head))
	assert.Equal(t, "<a/>", string(m.Body))
	assert.NoError(t, server.Close())
}

// TestUnansweredAsJSON: a request of a replay that gets no reply says why.
func TestUnansweredAsJSON(t *testing.T) {
	recording := filepath.Join(t.TempDir(), "recorded.pcapng")
	code, _, stderr := do(t, "stream", "http://"+startEcho(t)+peer.EchoPath,
		shared.Testdata(t, "soap", "cwmp-inform.xml"), "--record", recording)
	require.Equal(t, exit.Done, code, stderr)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		panic(http.ErrAbortHandler)
	}))
	defer server.Close()
	code, out, stderr := do(t, "replay", recording, "--to", server.URL+peer.EchoPath, "--as", "soap", "-o", "json")
	assert.Equal(t, exit.Partial, code, stderr)
	line, _, _ := strings.Cut(out, "\n")
	var r replay.ReplayLine
	require.NoError(t, json.Unmarshal([]byte(line), &r), out)
	assert.NotEmpty(t, r.Error)
	assert.Zero(t, r.Status)
}

// TestFaultsOfReplaysAsJSON: where a status differs, the fault is there that either reply is.
func TestFaultsOfReplaysAsJSON(t *testing.T) {
	failing := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "text/xml; charset=utf-8")
		w.WriteHeader(http.StatusInternalServerError)
		_, _ = io.WriteString(w, `<s:Envelope xmlns:s="http://schemas.xmlsoap.org/soap/envelope/"><s:Body><s:Fault>`+
			`<faultcode>s:Server</faultcode><faultstring>out of order</faultstring></s:Fault></s:Body></s:Envelope>`)
	}))
	defer failing.Close()
	urls := []string{"http://" + startEcho(t) + peer.EchoPath, failing.URL + peer.EchoPath}
	for i, to := range []string{urls[1], urls[0]} {
		recording := filepath.Join(t.TempDir(), "recorded.pcapng")
		_, _, stderr := do(t, "stream", urls[i], shared.Testdata(t, "soap", "cwmp-inform.xml"), "--record", recording)
		code, out, _ := do(t, "replay", recording, "--to", to, "--as", "soap", "-o", "json")
		assert.Equal(t, exit.Failed, code, stderr)
		line, _, _ := strings.Cut(out, "\n")
		var r replay.ReplayLine
		require.NoError(t, json.Unmarshal([]byte(line), &r), out)
		require.NotNil(t, r.Difference, out)
		faults := [2]string{}
		faults[1-i] = "Server: out of order"
		assert.Equal(t, faults, [2]string{r.Difference.RecordedFault, r.Difference.NowFault})
	}
}

// TestVersionOfACheckout: a build of a checkout says which commit, and whether it was changed.
func TestVersionOfACheckout(t *testing.T) {
	v := cmdline.VersionOf(&debug.BuildInfo{Settings: []debug.BuildSetting{
		{Key: "vcs.revision", Value: "abc"}, {Key: "vcs.modified", Value: "true"},
	}}, resolve.System{})
	line, err := json.Marshal(v)
	require.NoError(t, err)
	keepText(t, append(line, '\n'), "version")
	assert.Contains(t, v.Line(), " commit abc+changes ")
}

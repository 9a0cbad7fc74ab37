package session_test

import (
	"flag"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/responder"
	"github.com/hhfr/hhfr/internal/session"
	"github.com/hhfr/hhfr/internal/typed"
	"github.com/hhfr/hhfr/internal/wsdl"
	"github.com/hhfr/hhfr/pkg/negotiate"
	"github.com/hhfr/hhfr/pkg/streamer"
)

var update = flag.Bool("update", false, "write the transports in the table of paths of docs/architecture.md anew")

// TestTransportsOnThePage: the table of paths in docs/architecture.md has the rows of the code in
// their order, and a column for each transport, with how the path comes to a connection of it. The
// table of transports has only those that exist, and each is dialed by a path.
func TestTransportsOnThePage(t *testing.T) {
	file := filepath.Join("..", "..", "docs", "architecture.md")
	page, err := os.ReadFile(file)
	require.NoError(t, err)
	const head = "| path | `auto` tries it if | opens |"
	before, rest, found := strings.Cut(string(page), head)
	require.True(t, found, "docs/architecture.md has no table of paths")
	table, after, found := strings.Cut(head+rest, "\n\n")
	require.True(t, found)
	rows := strings.Split(table, "\n")
	modes := session.Paths()
	require.Len(t, rows, 2+len(modes), "rows of the table of paths")

	text := []string{head, "|---|---|---|"}
	var by []map[string][]string
	for i, mode := range modes {
		cells := strings.SplitAfterN(rows[2+i], "|", 5)
		require.Len(t, cells, 5, rows[2+i])
		assert.Equal(t, string(mode), strings.Trim(cells[1], " |"), "the rows stand in the order of paths")
		text = append(text, strings.Join(cells[:4], ""))
		by = append(by, session.Means(mode))
	}
	for _, transport := range negotiate.Transports {
		text[0], text[1] = text[0]+" "+transport.Name+" |", text[1]+"---|"
		dialed := false
		for i, cells := range by {
			text[2+i] += " " + strings.Join(append(cells[transport.Name], "|"), ", ")
			dialed = dialed || slices.Contains(cells[transport.Name], "dials")
			delete(cells, transport.Name)
		}
		assert.True(t, dialed, "nothing dials %s", transport.Name)
	}
	for i, cells := range by {
		assert.Empty(t, cells, "path %s: no such transports", modes[i])
	}
	want := strings.ReplaceAll(strings.Join(text, "\n"), ", |", " |")
	if *update {
		require.NoError(t, os.WriteFile(file, []byte(before+want+"\n\n"+after), 0o644))
		return
	}
	assert.Equal(t, want, table, "stale: go test ./internal/session -run TestTransportsOnThePage -update")
}

// declaring describes a service whose streams, of some transports, are at an address.
func declaring(t *testing.T, url, streams string, transports ...string) *wsdl.ServiceDescription {
	t.Helper()
	description := `<definitions xmlns="http://schemas.xmlsoap.org/wsdl/" xmlns:t="urn:t" targetNamespace="urn:t"
		xmlns:soap="http://schemas.xmlsoap.org/wsdl/soap/">
		<portType name="P"/>
		<binding name="A" type="t:P"><soap:binding transport="http://schemas.xmlsoap.org/soap/http"/></binding>
		<service name="S"><port name="A" binding="t:A"><soap:address location="` + url + `"/></port></service>
		</definitions>`
	declared := &wsdl.DeclaredStreams{Scheme: negotiate.Scheme}
	for _, name := range transports {
		declared.Streams = append(declared.Streams,
			wsdl.DeclaredStream{Transport: negotiate.TransportURI(name), Address: streams})
	}
	text, err := wsdl.Annotate([]byte(description), declared)
	require.NoError(t, err)
	d, err := wsdl.Parse(t.Context(), text)
	require.NoError(t, err)
	return d
}

// A responder takes a long first message that comes before its hello is read, although that states
// less.
func TestEarlyMessagesAreLongerThanTheResponderStates(t *testing.T) {
	server := open(t, http.HandlerFunc(repeat), false, func(c *responder.Config) { c.Stream.Limits.MaxFragment = 512 })
	at, err := url.Parse(server.url)
	require.NoError(t, err)
	cfg := server.config(negotiate.Declared)
	cfg.Contract = typed.New(declaring(t, server.url, ":"+at.Port(), "tcp"))
	s := dial(t, server.url, cfg)
	noise := make([]byte, 4000)
	for i, rnd := 0, rand.New(rand.NewPCG(1, 2)); i < len(noise); i++ {
		noise[i] = byte('a' + rnd.IntN(26)) // which nothing makes short
	}
	say(t, s, string(noise))
	assert.Equal(t, negotiate.Declared, s.Agreed().Mode)
}

// A stream over datagrams that a description declares is not opened: its responder would refuse a
// first contact there.
func TestDeclaredDatagramsAreNotDialed(t *testing.T) {
	const at = "http://127.0.0.1:1/"
	datagrams, connections := &loopback{}, &loopback{}
	for _, last := range []string{"udp", "tcp"} {
		d := declaring(t, at, ":1", "udp", last)
		cfg := config(t)
		cfg.Mode, cfg.Contract, cfg.RememberFor = negotiate.Declared, typed.New(d), -1
		cfg.Transports = map[string]streamer.Transport{"udp": datagrams, "tcp": connections}
		s := dial(t, at, cfg)
		require.Len(t, s.Agreed().Tried, 1)
		if last == "udp" {
			assert.Equal(t, "the description declares no transport that is allowed here", s.Agreed().Tried[0].Why)
			assert.Zero(t, connections.dialled())
		}
		require.NoError(t, s.Close())
	}
	assert.Zero(t, datagrams.dialled())
	assert.Equal(t, 1, connections.dialled(), "the next of the description")
}

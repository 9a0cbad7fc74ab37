package page_test

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/cmd/hhfr/internal/page"
	"github.com/hhfr/hhfr/internal/pcap"
	"github.com/hhfr/hhfr/internal/pcapng"
	"github.com/hhfr/hhfr/internal/shared"
	"github.com/hhfr/hhfr/pkg/ctxstore/directory"
	"github.com/hhfr/hhfr/pkg/ctxstore/transfer"
)

// opened are files as a page has them.
func opened(t testing.TB, names ...string) *page.Viewer {
	t.Helper()
	var files []page.DroppedFile
	for _, name := range names {
		files = append(files, page.DroppedFile{Name: filepath.Base(name), Octets: shared.Read(t, name)})
	}
	v, err := page.Open(files)
	require.NoError(t, err)
	return v
}

// storeFile is the store of the recordings, as hhfr context export writes it.
func storeFile(t testing.TB) (name string) {
	t.Helper()
	store, err := directory.Open(shared.Testdata(t, "pcap", "store"), directory.Config{ReadOnly: true})
	require.NoError(t, err)
	defer func() { require.NoError(t, store.Close()) }()
	var file bytes.Buffer
	_, err = transfer.Export(t.Context(), &file, store, "", nil)
	require.NoError(t, err)
	name = filepath.Join(t.TempDir(), "store.jsonl")
	require.NoError(t, os.WriteFile(name, file.Bytes(), 0o600))
	return name
}

// cutCapture is a recording without its beginning, in which the shapes are.
func cutCapture(t testing.TB) (name string) {
	t.Helper()
	whole := shared.Read(t, shared.Testdata(t, "pcap", "session.pcapng"))
	r, err := pcap.NewReader(bufio.NewReader(bytes.NewReader(whole)))
	require.NoError(t, err)
	file := pcap.AppendHead(nil, "hhfr", "hhfr", pcap.LinkRaw)
	const gone = 10
	for i := 0; ; i++ {
		p, err := r.Next()
		if err != nil {
			require.ErrorIs(t, err, io.EOF)
			break
		}
		if i >= gone {
			file = pcap.AppendPacket(file, p)
		}
	}
	name = filepath.Join(t.TempDir(), "cut.pcapng")
	require.NoError(t, os.WriteFile(name, file, 0o600))
	return name
}

const (
	// hostile is an envelope whose writer hopes for a page that takes it for markup, or hides
	// something by a change of direction or a sequence of a terminal.
	hostile = `<s:Envelope xmlns:s="http://schemas.xmlsoap.org/soap/envelope/"><s:Body><a>` +
		`<img src="x" onerror="document.title=1"/><script>document.title=2</script>` +
		"\u202e\x1b[31m</a></s:Body></s:Envelope>"
	// markup is a fault that has some in its reason.
	markup = `<s:Envelope xmlns:s="http://schemas.xmlsoap.org/soap/envelope/"><s:Body><s:Fault><faultcode>s:Client` +
		`</faultcode><faultstring>&lt;b>&amp;amp;&lt;/b></faultstring></s:Fault></s:Body></s:Envelope>`
	// fields end a head.
	fields = "Content-Type: text/xml\r\nContent-Length: %d\r\n\r\n%s"
)

// hostileCapture is a capture of both.
func hostileCapture(t testing.TB) (name string) {
	t.Helper()
	var file bytes.Buffer
	rec := pcapng.NewRecorder(&file, func() time.Time { return time.Unix(1_800_000_000, 0) })
	client, server := net.Pipe()
	c := rec.Conn(client)
	for i, text := range []string{
		fmt.Sprintf("POST / HTTP/1.1\r\nHost: x\r\n"+fields, len(hostile), hostile),
		fmt.Sprintf("HTTP/1.1 500 <i>\r\n"+fields, len(markup), markup),
	} {
		from, to := net.Conn(c), server
		if i == 1 {
			from, to = server, c
		}
		done := make(chan error, 1)
		go func() { _, err := io.WriteString(from, text); done <- err }()
		_, err := io.ReadFull(to, make([]byte, len(text)))
		require.NoError(t, err)
		require.NoError(t, <-done)
	}
	require.NoError(t, c.Close())
	require.NoError(t, rec.Close())
	name = filepath.Join(t.TempDir(), "hostile.pcapng")
	require.NoError(t, os.WriteFile(name, file.Bytes(), 0o600))
	return name
}

// TestRows: the list has what decode has, by the same filters.
func TestRows(t *testing.T) {
	v := opened(t, shared.Testdata(t, "pcap", "session.pcapng"))
	require.Equal(t, 34, v.Len())
	assert.Equal(t, "31 packets, 34 messages, 32 verified, 2 unchecked", v.Found())
	assert.Len(t, v.Row(0), len(page.Columns))
	assert.Equal(t, "- 07:49:00.151952 request Offer", strings.Join(v.Row(0)[:4], " "))

	require.NoError(t, v.Choose(`reply && number == 2`, ""))
	require.Equal(t, 1, v.Len())
	assert.Equal(t, "2 07:49:00.196870 reply GetForecastResponse 1014 200 15.8 ms verified 127.0.0.1:41465 "+
		"127.0.0.1:51072 b6e181b6 191", strings.Join(v.Row(0), " "))
	err := v.Choose("reply && numb", "")
	require.ErrorContains(t, err, "^")
	assert.Equal(t, 1, v.Len(), "as before")
	require.NoError(t, v.Choose("request", "getforecastresponse"))
	require.NotZero(t, v.Len())
	chosen := v.Len()
	require.NoError(t, v.Choose("request", "getForecastresponse"))
	assert.Zero(t, v.Len(), "a capital is meant")
	require.NoError(t, v.Choose("request", "GetForecastResponse"))
	require.Equal(t, chosen, v.Len())
	for i := range v.Len() {
		_, body := v.Show(i, false)
		assert.Contains(t, body, "GetForecastResponse")
	}
}

// TestFilesThatHelp: what the store lacks for shows without it why, and with it the messages.
func TestFilesThatHelp(t *testing.T) {
	capture := cutCapture(t)
	assert.Contains(t, opened(t, capture).Found(), "undecodable")
	with := opened(t, storeFile(t), capture)
	assert.Equal(t, "21 packets, 30 messages, 30 verified", with.Found())
	_, body := with.Show(0, true)
	assert.Contains(t, body, "Envelope")
}

// TestKeys: a log of keys opens what is in TLS.
func TestKeys(t *testing.T) {
	authority := shared.NewAuthority(t)
	var file, keys bytes.Buffer
	rec := pcapng.NewRecorder(&file, nil)
	here, there := net.Pipe()
	c := rec.Conn(here)
	client := tls.Client(c, &tls.Config{RootCAs: authority.Pool(), ServerName: "127.0.0.1", KeyLogWriter: &keys})
	server := tls.Server(there, &tls.Config{Certificates: []tls.Certificate{authority.Issue(time.Hour, "127.0.0.1")}})
	text := fmt.Sprintf("POST / HTTP/1.1\r\n"+fields, len(hostile), hostile)
	done := make(chan error, 1)
	go func() { _, err := io.ReadFull(server, make([]byte, len(text))); done <- err }()
	_, err := io.WriteString(client, text)
	require.NoError(t, err)
	require.NoError(t, <-done)
	require.NoError(t, c.Close())
	require.NoError(t, rec.Close())
	captured := page.DroppedFile{Name: "c", Octets: file.Bytes()}
	v, err := page.Open([]page.DroppedFile{captured})
	require.NoError(t, err)
	assert.Contains(t, v.Found(), "without their keys")
	v, err = page.Open([]page.DroppedFile{{Name: "k", Octets: keys.Bytes()}, captured})
	require.NoError(t, err)
	require.Contains(t, v.Found(), "1 message, 1 unchecked, 1 of TLS decrypted")
	_, body := v.Show(0, false)
	assert.Contains(t, body, "onerror")
}

// TestNoCaptures: what is not read has an error that says what would be.
func TestNoCaptures(t *testing.T) {
	for text, want := range map[string]string{
		"":                            "x: neither a capture",
		"<a/>":                        "x: neither a capture",
		`{"contexts":1}` + "\n":       "x: ",
		"CLIENT_RANDOM 00 00\n":       "x: neither a capture",
		"\x0a\x0d\x0d\x0aand no more": "x: ",
	} {
		_, err := page.Open([]page.DroppedFile{{Name: "x", Octets: []byte(text)}})
		require.ErrorContains(t, err, want, text)
	}
	_, err := page.Open(nil)
	require.ErrorContains(t, err, "none of these files is a capture")
}

// TestHostileTexts: what cannot be seen has a sign.
func TestHostileTexts(t *testing.T) {
	v := opened(t, hostileCapture(t))
	require.Equal(t, 2, v.Len())
	head, body := v.Show(0, false)
	assert.Equal(t, "POST / HTTP/1.1\nHost: x\nContent-Type: text/xml\nContent-Length: 183\n\n", head)
	assert.Equal(t, strings.NewReplacer("\u202e", "\uFFFD", "\x1b", "\uFFFD").Replace(hostile), body)
	assert.Contains(t, strings.Join(v.Row(1), " "), "unchecked, fault Client: <b>&amp;</b>")
	_, body = v.Show(0, true)
	assert.Contains(t, body, "\n")
	assert.NotContains(t, body, "\x1b")
}

package capture_test

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/capture"
	"github.com/hhfr/hhfr/internal/codec/fastinfoset"
	"github.com/hhfr/hhfr/internal/pcapng"
	"github.com/hhfr/hhfr/internal/spool"
	"github.com/hhfr/hhfr/pkg/soap"
)

// exchanged is a capture of calls in plain SOAP, whose requests and replies have a type and a body.
func exchanged(t *testing.T, messages ...[2]string) []byte {
	t.Helper()
	var file bytes.Buffer
	rec := pcapng.NewRecorder(&file, nil)
	here, there := net.Pipe()
	conn := rec.Conn(here)
	for _, m := range messages {
		rest := fmt.Sprintf("Content-Type: %s\r\nContent-Length: %d\r\n\r\n%s", m[0], len(m[1]), m[1])
		request, reply := "POST / HTTP/1.1\r\n"+rest, "HTTP/1.1 200 OK\r\n"+rest
		go func() {
			_, _ = io.ReadFull(there, make([]byte, len(request)))
			_, _ = io.WriteString(there, reply)
		}()
		_, err := io.WriteString(conn, request)
		require.NoError(t, err)
		_, err = io.ReadFull(conn, make([]byte, len(reply)))
		require.NoError(t, err)
	}
	require.NoError(t, conn.Close())
	require.NoError(t, there.Close())
	require.NoError(t, rec.Close())
	return file.Bytes()
}

// Envelopes in Fast Infoset are given as XML where that is wanted, and as they are where not.
func TestFastInfosetAsXML(t *testing.T) {
	text := envelope("op", "", strings.Repeat("<n>1</n><m>12345</m>", 300_000))
	short := envelope("op", "", "<n>1</n>")
	doc, err := new(fastinfoset.InfosetWriter).FromXML(nil, []byte(text))
	require.NoError(t, err)
	small, err := new(fastinfoset.InfosetWriter).FromXML(nil, []byte(short))
	require.NoError(t, err)
	file := exchanged(t,
		[2]string{"application/fastinfoset", string(doc)},
		[2]string{"application/soap+fastinfoset; action=a", string(small)},
		[2]string{"application/fastinfoset", string(small[:40])}, [2]string{"application/fastinfoset", short})

	for _, starts := range []bool{false, true} {
		r, err := capture.Decode(t.Context(), bytes.NewReader(file), capture.DecodeConfig{XML: true, Starts: starts})
		require.NoError(t, err)
		require.Len(t, r.Messages, 8)
		for i, m := range r.Messages {
			assert.Equal(t, i < 4, m.FastInfoset)
			assert.Equal(t, capture.Unchecked, m.State)
			if i < 4 {
				assert.Equal(t, "op", m.Operation.Local)
				assert.Equal(t, soap.V11, m.Version)
			}
		}
		assert.Greater(t, len(doc), 3*spool.Kept/2, "what is read as a whole")
		assert.EqualValues(t, len(text), r.Messages[0].BodyOctets)
		assert.Empty(t, r.Messages[0].Why)
		if !starts {
			assert.Equal(t, canonicalXML(t, text), canonicalXML(t, string(r.Messages[0].Body)))
		}
		assert.Equal(t, canonicalXML(t, short), canonicalXML(t, string(r.Messages[3].Body)))
		assert.Equal(t, "offset 10: the Fast Infoset document ends too early: a string of 41 bytes, and 30 are left",
			r.Messages[4].Why)
		assert.Equal(t, string(small[:40]), string(r.Messages[4].Body), "what cannot be read stays as it is")
		assert.Contains(t, r.Messages[6].Why, "no Fast Infoset")
		assert.Equal(t, short, string(r.Messages[6].Body))
	}

	r, err := capture.Decode(t.Context(), bytes.NewReader(file), capture.DecodeConfig{})
	require.NoError(t, err)
	assert.Equal(t, doc, r.Messages[0].Body)
	assert.Equal(t, soap.V11, r.Messages[0].Version, "the media type says so")
	assert.Equal(t, soap.V12, r.Messages[2].Version)
}

// canonicalXML is what the codec makes of a text.
func canonicalXML(t *testing.T, text string) string {
	t.Helper()
	doc, err := new(fastinfoset.InfosetWriter).FromXML(nil, []byte(text))
	require.NoError(t, err)
	return string(doc)
}

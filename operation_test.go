package hhfr_test

import (
	"bytes"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr"
)

// Both ends tell the operation of a message before it is read, and what is read then is all of it:
// over each path, from each kind of body.
func TestOperation(t *testing.T) {
	long := envelope("1.1", "<m:GetStatus xmlns:m='urn:m'>"+strings.Repeat("x", 10_000)+"</m:GetStatus>")
	bodies := map[string]func(string) io.Reader{
		"memory":  func(s string) io.Reader { return hhfr.Body(s) },
		"bytes":   func(s string) io.Reader { return bytes.NewReader([]byte(s)) },
		"strings": func(s string) io.Reader { return strings.NewReader(s) },
		"bytewise": func(s string) io.Reader {
			return iotest.OneByteReader(struct{ io.Reader }{strings.NewReader(s)})
		},
		"file": func(s string) io.Reader {
			f, err := os.CreateTemp(t.TempDir(), "")
			require.NoError(t, err)
			_, err = f.WriteString("behind us" + s)
			require.NoError(t, err)
			_, err = f.Seek(int64(len("behind us")), io.SeekStart)
			require.NoError(t, err)
			return f
		},
		"closed": func(s string) io.Reader { return &closing{Reader: strings.NewReader(s)} },
	}
	texts := map[string]string{
		long: "GetStatus", envelope("1.2", "<a/>"): "a", envelope("1.1", ""): "", "no envelope": "", "": "",
		envelope("1.1", "<s:Fault/>"): "Fault",
		`<Envelope><Header>` + strings.Repeat(" ", 1<<16) + `</Header><Body><late/></Body></Envelope>`: "",
	}
	for _, by := range []way{plain, stream} {
		c := dial(t, serve(t, by, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			for range 2 {
				w.Header().Set("X-Operation", hhfr.OperationOf(r))
			}
			echo(w, r)
		})), config(t))
		for kind, body := range bodies {
			for text, want := range texts {
				req := &hhfr.Request{Body: body(text)}
				assert.Equal(t, want, req.Operation(), kind)
				assert.Equal(t, want, req.Operation(), "%s, again", kind)
				reply, err := c.Call(t.Context(), req)
				require.NoError(t, err)
				assert.Equal(t, want, reply.Header.Get("X-Operation"), "%s over %s", kind, by)
				assert.Equal(t, want == "Fault", reply.Fault() != nil)
				got, err := reply.ReadAll()
				require.NoError(t, err)
				assert.Equal(t, text, string(got), "%s over %s", kind, by)
			}
		}
	}
	assert.Empty(t, new(hhfr.Request).Operation())
	assert.Empty(t, hhfr.OperationOf(new(http.Request)))
}

// Messages of a capture have theirs; looking for it takes nothing from their bodies.
func TestOperationOfCaptured(t *testing.T) {
	file, err := os.Open("testdata/pcap/session.pcapng")
	require.NoError(t, err)
	defer file.Close()
	seen := 0
	for m, err := range hhfr.Decode(file, nil) {
		require.NoError(t, err)
		name := m.Operation()
		body, err := io.ReadAll(m.Body)
		require.NoError(t, err)
		if name != "" {
			assert.Contains(t, string(body), name)
			seen++
		}
	}
	assert.NotZero(t, seen)
}

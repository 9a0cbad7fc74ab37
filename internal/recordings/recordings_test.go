package recordings_test

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/capture"
	"github.com/hhfr/hhfr/internal/recordings"
	"github.com/hhfr/hhfr/internal/shared"
	"github.com/hhfr/hhfr/pkg/ctxstore/memory"
)

// exchange has the recorded end of a connection ask, and the other one reply.
func exchange(t *testing.T, here, there net.Conn, number int) {
	t.Helper()
	body := fmt.Sprintf(`<s:Envelope xmlns:s="http://schemas.xmlsoap.org/soap/envelope/">`+
		`<s:Body><q>%d</q></s:Body></s:Envelope>`, number)
	message := func(start string) []byte {
		return fmt.Appendf(nil, "%s\r\nContent-Type: text/xml\r\nContent-Length: %d\r\n\r\n%s", start, len(body), body)
	}
	for _, way := range []struct {
		from, to net.Conn
		message  []byte
	}{{here, there, message("POST /q HTTP/1.1\r\nHost: a")}, {there, here, message("HTTP/1.1 200 OK")}} {
		wrote := make(chan error, 1)
		go func() { _, err := way.from.Write(way.message); wrote <- err }()
		_, err := io.ReadFull(way.to, make([]byte, len(way.message)))
		require.NoError(t, err)
		require.NoError(t, <-wrote)
	}
}

// bodies are those of the messages in a file.
func bodies(t *testing.T, name string) (all string) {
	t.Helper()
	result, err := capture.Decode(t.Context(), bytes.NewReader(shared.Read(t, name)), capture.DecodeConfig{})
	require.NoError(t, err)
	for _, m := range result.Messages {
		all += regexp.MustCompile(`<q>.*</q>`).FindString(string(m.Body))
	}
	return all
}

// A file that is old enough is complete before the next packet. An exchange that is in progress is
// whole in the next file; those before it are in one file only.
func TestAge(t *testing.T) {
	name := filepath.Join(t.TempDir(), "r.pcapng")
	now := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	rec, err := recordings.Open(recordings.Config{
		Name: name, Age: time.Hour, Files: 2, Store: memory.New(memory.Config{}), Now: func() time.Time { return now },
	})
	require.NoError(t, err)
	here, there := net.Pipe()
	conn := rec.Conn(here)
	for n := range 5 {
		exchange(t, conn, there, 2*n)
		now = now.Add(59 * time.Minute)
		exchange(t, conn, there, 2*n+1)
		now = now.Add(2 * time.Minute)
	}
	require.NoError(t, conn.Close())
	require.NoError(t, there.Close())
	require.NoError(t, rec.Close())
	files, err := filepath.Glob(filepath.Join(filepath.Dir(name), "*"))
	require.NoError(t, err)
	require.Equal(t, []string{"r-20260501T160400.000Z.pcapng", "r-20260501T170500.000Z.pcapng", "r.pcapng"},
		[]string{filepath.Base(files[0]), filepath.Base(files[1]), filepath.Base(files[2])})
	assert.Equal(t, "<q>5</q><q>5</q><q>6</q><q>6</q><q>7</q><q>7</q>", bodies(t, files[0]),
		"the last exchange of the file before may have been in progress")
	assert.Equal(t, "<q>7</q><q>7</q><q>8</q><q>8</q><q>9</q><q>9</q>", bodies(t, files[1]))
	info, err := os.Stat(files[0])
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o600), info.Mode().Perm())
}

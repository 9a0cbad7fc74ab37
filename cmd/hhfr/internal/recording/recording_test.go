package recording

import (
	"io"
	"net"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/shared"
	"github.com/hhfr/hhfr/pkg/negotiate"
)

// around is a connection with another one below, as upgraded ones are.
type around struct{ net.Conn }

func (a around) NetConn() net.Conn { return a.Conn }

// What was agreed is noted on the recorded connection, whatever wraps it, and on no other.
func TestFactsOfWrappedConnections(t *testing.T) {
	name := filepath.Join(t.TempDir(), "r.pcapng")
	rec, err := (&RecordOptions{Name: name}).Open(nil, nil)
	require.NoError(t, err)
	here, there := net.Pipe()
	conn := rec.Dialed()(here)
	rec.Facts(negotiate.Facts{Path: "/noted"}, around{around{conn}})
	rec.Facts(negotiate.Facts{Path: "/elsewhere"}, around{there})
	wrote := make(chan error, 1)
	go func() { _, err := conn.Write([]byte("x")); wrote <- err }()
	_, err = io.ReadFull(there, make([]byte, 1))
	require.NoError(t, err)
	require.NoError(t, <-wrote)
	require.NoError(t, conn.Close())
	require.NoError(t, there.Close())
	require.NoError(t, rec.Close())
	file := string(shared.Read(t, name))
	assert.Contains(t, file, `"path":"/noted"`)
	assert.NotContains(t, file, "/elsewhere")
}

package nats_test

import (
	"errors"
	"net"
	"strconv"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/pkg/ctxstore/nats"
	"github.com/hhfr/hhfr/pkg/ctxstore/storetest"
)

// A change whose connection breaks before its answer is made once: it is neither lost, nor taken
// for that of another.
func TestConnectionsAreCut(t *testing.T) {
	s := serve(t)
	var cuts atomic.Int64
	var cutting atomic.Bool
	b, err := nats.Open(t.Context(), "nats://one/contexts?storage=memory", nats.Config{
		Dial: func(string, string) (net.Conn, error) {
			c, err := s.InProcessConn()
			return &cutConn{Conn: c, cutting: &cutting, cuts: &cuts, after: 6 + cuts.Load()%7}, err
		},
	})
	require.NoError(t, err)
	closed(t, b)
	cutting.Store(true)
	const n = 20
	storetest.Count(t, b, uri, n)
	cutting.Store(false)
	e, err := b.Get(t.Context(), uri)
	require.NoError(t, err)
	assert.Equal(t, strconv.Itoa(n), string(e.Value))
	assert.Greater(t, cuts.Load(), int64(n/4))
}

// cutConn ends after a number of reads, whose last one it keeps for itself.
type cutConn struct {
	net.Conn
	cutting      *atomic.Bool
	cuts         *atomic.Int64
	reads, after int64
}

func (c *cutConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if c.reads++; c.cutting.Load() && err == nil && c.reads >= c.after {
		c.cuts.Add(1)
		_ = c.Close()
		return 0, errors.New("cut")
	}
	return n, err
}

package pcapng_test

import (
	"bytes"
	"io"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/pcapng"
)

// messenger takes messages each for itself, up to a long one.
type messenger struct {
	net.Conn
	tell func(uint64)
}

func (m *messenger) MayUnorder() bool { return true }

func (m *messenger) Unorder(acknowledged func(uint64)) { m.tell = acknowledged }

func (m *messenger) WriteMessages(b []byte, ends []int) (n int, last uint64, err error) {
	for _, end := range ends {
		if end-n > 10 {
			return n, last, io.ErrShortWrite
		}
		n, last = end, last+1
	}
	m.tell(last)
	return n, last, nil
}

// Messages that travel each for itself are recorded one behind the other, as far as the connection takes them.
func TestMessagesAreRecorded(t *testing.T) {
	dialed, _ := pair(t, "tcp")
	var file bytes.Buffer
	rec := pcapng.NewRecorder(&file, time.Now)
	assert.False(t, rec.Conn(dialed).MayUnorder())
	c := rec.Conn(&messenger{Conn: dialed})
	require.True(t, c.MayUnorder())
	told := uint64(0)
	c.Unorder(func(last uint64) { told = last })
	n, last, err := c.WriteMessages([]byte("one.two."), []int{4, 8})
	require.NoError(t, err)
	assert.Equal(t, 8, n)
	assert.EqualValues(t, 2, last)
	assert.EqualValues(t, 2, told)
	n, _, err = c.WriteMessages([]byte("three.too long for it"), []int{6, 21})
	assert.ErrorIs(t, err, io.ErrShortWrite)
	assert.Equal(t, 6, n)
	require.NoError(t, rec.Close())
	assert.Contains(t, file.String(), "one.two.")
	assert.Contains(t, file.String(), "three.")
	assert.NotContains(t, file.String(), "too long")
}

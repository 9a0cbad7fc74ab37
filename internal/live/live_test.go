package live

import (
	"errors"
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// script is packets that come one after the other; nil: none comes for some time.
type script struct {
	packets [][]byte
	closed  bool
}

var errOver = errors.New("over")

func (s *script) next() ([]byte, int, time.Time, error) {
	if len(s.packets) == 0 {
		return nil, 0, time.Time{}, errOver
	}
	p := s.packets[0]
	s.packets = s.packets[1:]
	if p == nil {
		return nil, 0, time.Time{}, nil
	}
	return p, len(p) + 1, time.Unix(3, 4), nil
}

func (s *script) drops() int { return 7 }
func (s *script) close()     { s.closed = true }

// TestStream: packets are a pcap file, however it is read.
func TestStream(t *testing.T) {
	s := &script{packets: [][]byte{[]byte("one"), nil, []byte("three")}}
	source := newSource(s, linkRaw, func() bool { return false })
	var all []byte
	b := make([]byte, 5)
	for {
		n, err := source.Read(b)
		all = append(all, b[:n]...)
		if err != nil {
			assert.ErrorIs(t, err, errOver)
			break
		}
	}
	assert.Equal(t, "\x4D\x3C\xB2\xA1\x02\x00\x04\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x04\x00\x65\x00\x00\x00"+
		"\x03\x00\x00\x00\x04\x00\x00\x00\x03\x00\x00\x00\x04\x00\x00\x00one"+
		"\x03\x00\x00\x00\x04\x00\x00\x00\x05\x00\x00\x00\x06\x00\x00\x00three", string(all))
	assert.Equal(t, 7, source.Drops())
	require.NoError(t, source.Close())
	assert.True(t, s.closed)
}

// TestStopped: a capture that is stopped has an end.
func TestStopped(t *testing.T) {
	asked := 0
	packets := &script{packets: [][]byte{nil, nil, nil}}
	source := newSource(packets, linkEthernet, func() bool { asked++; return asked > 2 })
	all, err := io.ReadAll(source)
	require.NoError(t, err)
	assert.Len(t, all, 24)
}

// TestNoInterface: what is no interface is an error that names those there are.
func TestNoInterface(t *testing.T) {
	_, err := Open("none0", func() bool { return true })
	if errors.Is(err, ErrSystem) {
		return
	}
	require.ErrorIs(t, err, ErrInterface)
	assert.ErrorContains(t, err, "none0")
	assert.ErrorContains(t, err, "any")
}

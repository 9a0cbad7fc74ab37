package udp_test

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/pkg/streamer/udp"
	"github.com/hhfr/hhfr/pkg/wsrm"
)

// messenger is what a connection can do besides.
type messenger interface {
	net.Conn
	MayUnorder() bool
	Unorder(acknowledged func(last uint64))
	WriteMessages(b []byte, ends []int) (n int, last uint64, err error)
	Stats() wsrm.Stats
}

// A message that is lost comes when it is sent again, and no other later than it would; what the other end has is told.
func TestMessagesEachForItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var lost atomic.Bool
		dialled, accepted, l := connect(t, "lte", udp.Config{}, func(near, far net.PacketConn) (net.PacketConn, net.PacketConn) {
			return filter{near, func(b []byte) bool {
				return !bytes.Contains(b, []byte("message 2")) || lost.Swap(true)
			}}, far
		})
		a, b := dialled.(messenger), accepted.(messenger)
		assert.True(t, a.MayUnorder())
		_, err := a.Write([]byte("hello "))
		require.NoError(t, err)
		_, err = io.ReadFull(b, make([]byte, 6))
		require.NoError(t, err)
		var mu sync.Mutex
		var told []uint64
		a.Unorder(func(last uint64) {
			mu.Lock()
			defer mu.Unlock()
			told = append(told, last)
		})
		b.Unorder(func(uint64) {})
		for i := range 5 {
			m := fmt.Sprintf("message %d.", i)
			n, last, err := a.WriteMessages([]byte(m), []int{len(m)})
			require.NoError(t, err)
			assert.Equal(t, len(m), n)
			assert.EqualValues(t, 2+i, last)
			time.Sleep(time.Millisecond)
		}
		got := make([]byte, 5*10)
		_, err = io.ReadFull(b, got)
		require.NoError(t, err)
		assert.Equal(t, "message 0.message 1.message 3.message 4.message 2.", string(got))
		time.Sleep(time.Second)
		mu.Lock()
		assert.True(t, slices.IsSorted(told))
		assert.EqualValues(t, 6, told[len(told)-1])
		mu.Unlock()
		require.NoError(t, a.Close())
		require.NoError(t, b.Close())
		require.NoError(t, l.Close())
	})
}

// Messages that are written together share datagrams, and stay apart; what is too long is refused.
func TestMessagesShareDatagrams(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dialled, accepted, l := connect(t, "lte", udp.Config{}, nil)
		a, b := dialled.(messenger), accepted.(messenger)
		a.Unorder(func(uint64) {})
		b.Unorder(func(uint64) {})
		var all []byte
		var ends []int
		for range 20 {
			all = append(all, strings.Repeat("x", 30)...)
			ends = append(ends, len(all))
		}
		before := a.Stats().Sent
		n, last, err := a.WriteMessages(all, ends)
		require.NoError(t, err)
		assert.Equal(t, len(all), n)
		assert.EqualValues(t, 20, last)
		assert.EqualValues(t, 1, a.Stats().Sent-before)
		_, err = io.ReadFull(b, make([]byte, len(all)))
		require.NoError(t, err)
		n, _, err = a.WriteMessages(make([]byte, 10+8193), []int{10, 10 + 8193})
		assert.ErrorContains(t, err, "8193")
		assert.Equal(t, 10, n, "whole messages")
		require.NoError(t, a.Close())
		_, _, err = a.WriteMessages([]byte("x"), []int{1})
		assert.ErrorIs(t, err, net.ErrClosed)
		a.Unorder(nil)
		require.NoError(t, b.Close())
		require.NoError(t, l.Close())
	})
}

// Who does not read stops who writes, without order too.
func TestMessagesBackPressure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dialled, accepted, l := connect(t, "wifi", udp.Config{}, nil)
		a, b := dialled.(messenger), accepted.(messenger)
		a.Unorder(func(uint64) {})
		b.Unorder(func(uint64) {})
		require.NoError(t, a.SetWriteDeadline(time.Now().Add(time.Minute)))
		var err error
		written := 0
		for err == nil {
			var n int
			n, _, err = a.WriteMessages(make([]byte, 16000), []int{8000, 16000})
			written += n
		}
		assert.ErrorIs(t, err, os.ErrDeadlineExceeded)
		assert.Less(t, written, 4<<20)
		_, err = io.ReadFull(b, make([]byte, written))
		require.NoError(t, err)
		require.NoError(t, a.Close())
		_, err = b.Read(make([]byte, 1))
		assert.ErrorIs(t, err, io.EOF)
		require.NoError(t, b.Close())
		require.NoError(t, l.Close())
	})
}

package session_test

import (
	"context"
	"errors"
	"net"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/session"
	"github.com/hhfr/hhfr/pkg/ctxstore"
	"github.com/hhfr/hhfr/pkg/negotiate"
	"github.com/hhfr/hhfr/pkg/streamer"
	"github.com/hhfr/hhfr/pkg/wsrm"
)

// fuse is a connection that breaks after some bytes of one direction once it was lit.
type fuse struct {
	net.Conn
	mu    sync.Mutex
	left  [2]int // bytes that it still takes, in and out; 0: any number
	burnt bool
}

func (f *fuse) light(direction, octets int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.left[direction] = octets
}

// burn subtracts n bytes and returns how many of them go through.
func (f *fuse) burn(direction, n int) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch left := f.left[direction]; {
	case f.burnt:
		return 0
	case left == 0:
		return n
	case n < left:
		f.left[direction] -= n
		return n
	default:
		f.burnt = true
		return left - 1
	}
}

func (f *fuse) Read(p []byte) (int, error) {
	n, err := f.Conn.Read(p)
	if through := f.burn(0, n); through < n {
		_ = f.Close()
		return through, net.ErrClosed
	}
	return n, err
}

func (f *fuse) Write(p []byte) (int, error) {
	if through := f.burn(1, len(p)); through < len(p) {
		n, _ := f.Conn.Write(p[:through])
		_ = f.Close()
		return n, net.ErrClosed
	}
	return f.Conn.Write(p)
}

func (f *fuse) isBurnt() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.burnt
}

// A session breaks off after any byte of its Finish. The next one on its store can send at once;
// what was accepted before is committed once, in order, and no reply is lost.
func TestFinishIsCutAnywhere(t *testing.T) {
	for direction := range 2 {
		for at, burnt := 1, true; burnt; at++ {
			m := newBank(t, &teller{})
			cfg := assured(t, wsrm.ExactlyOnce, newLasting(t))
			cfg.Reconnect = 0
			var cut *fuse
			cfg.WrapConn = func(c net.Conn) net.Conn {
				cut = &fuse{Conn: c}
				return cut
			}
			sess := dial(t, m.url("/book"), cfg)
			call(t, sess, "", "1")
			require.NoError(t, sess.Send(t.Context(), streamer.NewMessage(nil, []byte("2"))))
			pending, err := sess.Begin(t.Context(), streamer.NewMessage(nil, []byte("3")))
			require.NoError(t, err)
			cut.light(direction, at)
			_ = sess.Finish(t.Context())
			_ = sess.Close()
			burnt = cut.isBurnt()
			status := sess.Sequence()
			_, replied := pending.Reply(t.Context())

			late := map[uint64]int{}
			cfg.Reconnect, cfg.WrapConn = time.Hour, nil
			cfg.LateReply = func(number uint64, _ *streamer.Message, err error) {
				assert.NoError(t, err)
				late[number]++
			}
			sess, err = session.Dial(t.Context(), m.url("/book"), cfg)
			require.NoError(t, err, "%d bytes of direction %d", at, direction)
			_, body := call(t, sess, "", "4")
			assert.Equal(t, "/book 4", body)
			require.NoError(t, sess.Finish(t.Context()))
			require.NoError(t, sess.Close())
			before := ""
			for n := range status.Accepted {
				before += strconv.FormatUint(n+1, 10) + " "
			}
			got, _ := effect(t, m.store)
			assert.Contains(t, []string{before + "4 ", "4 " + before}, got,
				"%d bytes of direction %d: what is new may have a sequence of its own", at, direction)
			if status.Accepted == 3 && replied != nil {
				assert.Equal(t, 1, late[3], "%d bytes of direction %d: the reply comes late", at, direction)
			}
			m.kill()
			if t.Failed() {
				return
			}
		}
	}
}

// forgetful is a store that now and then takes no entry of an outbox.
type forgetful struct {
	ctxstore.Store
	refusals atomic.Int64 // to come
	refused  chan struct{}
}

func (f *forgetful) Commit(ctx context.Context, uri string, expect uint64, value []byte) (uint64, error) {
	if strings.HasPrefix(uri, "urn:hhfr:outbox:") && f.refusals.Add(-1) >= 0 {
		select {
		case f.refused <- struct{}{}:
		default:
		}
		return 0, &ctxstore.Error{Code: ctxstore.Full, URI: uri}
	}
	return f.Store.Commit(ctx, uri, expect, value)
}

// The responder loses the sequence, and the store here takes no other for a while, or for good.
// Messages in flight continue once it does, and otherwise their fate is reported.
func TestLostSequenceAndAStoreThatFails(t *testing.T) {
	for name, refusals := range map[string]int64{"for a while": 2, "for good": 1 << 40} {
		t.Run(name, func(t *testing.T) {
			m := newBank(t, &teller{})
			store := &forgetful{Store: newLasting(t), refused: make(chan struct{}, 1)}
			sess := dial(t, m.url("/book"), assured(t, wsrm.AtLeastOnce, store))
			call(t, sess, "", "0")
			m.kill()
			m.store = newLasting(t)
			store.refusals.Store(refusals)
			posted, err := sess.Post(t.Context(), streamer.NewMessage(nil, []byte("1")))
			require.NoError(t, err)
			m.start()
			<-store.refused
			if name == "for good" {
				_ = sess.Close()
				if err := posted.Err(); errors.Is(err, &negotiate.Error{Code: negotiate.Unsent}) {
					got, _ := effect(t, m.store) // the stream was known to be lost before it was written
					assert.Empty(t, got)
				} else {
					assert.ErrorIs(t, err, &negotiate.Error{Code: negotiate.FateUnknown})
				}
				return
			}
			_, body := call(t, sess, "", "2")
			assert.Equal(t, "/book 2", body)
			require.NoError(t, sess.Finish(t.Context()))
			require.NoError(t, posted.Err())
			got, _ := effect(t, m.store)
			assert.Equal(t, "1 2 ", got)
		})
	}
}

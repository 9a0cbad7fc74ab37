package oneport_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"io"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/frame"
	"github.com/hhfr/hhfr/internal/oneport"
)

// pipes is a listener of connections in the process, so that time can be that of a bubble.
type pipes struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func listenPipes() *pipes { return &pipes{conns: make(chan net.Conn), closed: make(chan struct{})} }

func (l *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *pipes) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

func (l *pipes) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 80} }

// from is a connection of a client at an address.
type from struct {
	net.Conn
	addr net.Addr
}

func (c from) RemoteAddr() net.Addr { return c.addr }

func (l *pipes) dial(ip string) net.Conn {
	here, there := net.Pipe()
	l.conns <- from{there, &net.TCPAddr{IP: net.ParseIP(ip), Port: 9}}
	return here
}

// accepted delivers the connections of a listener in the order of their arrival.
func accepted(l net.Listener) <-chan net.Conn {
	conns := make(chan net.Conn, 100)
	go func() {
		defer close(conns)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			conns <- c
		}
	}()
	return conns
}

// A silent connection, or one that stops in the middle of the mark, is HTTP's after its time, to
// the second, and what it sends then arrives; one in the middle of a handshake is closed.
func TestSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := listenPipes()
		p := oneport.New(l, oneport.Config{Silence: time.Second, Timeout: 5 * time.Second})
		conns, streams := accepted(p.HTTP()), accepted(p.Streams())
		began := time.Now()
		silent := l.dial("192.0.2.2")
		c := <-conns
		assert.Equal(t, time.Second, time.Since(began))
		assert.True(t, oneport.Silent(c))
		go func() { _, _ = silent.Write([]byte("late")) }()
		got := make([]byte, 4)
		_, err := io.ReadFull(c, got)
		require.NoError(t, err)
		assert.Equal(t, "late", string(got))
		began = time.Now()
		slow := l.dial("192.0.2.2")
		var wait sync.WaitGroup
		wait.Go(func() {
			for _, b := range bytewise(hello[:6]) {
				_, _ = slow.Write(b)
				time.Sleep(900 * time.Millisecond)
			}
		})
		c = <-conns
		assert.Equal(t, 5*time.Second, time.Since(began))
		assert.False(t, oneport.Silent(c))
		_, err = io.ReadFull(c, got)
		require.NoError(t, err)
		assert.Equal(t, hello[:4], got)
		wait.Wait()
		_ = slow.Close()
		_ = silent.Close()
		require.NoError(t, p.Close())
		_, more := <-streams
		assert.False(t, more)
	})
}

// Handshakes have a time limit, too.
func TestSlowHandshake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := listenPipes()
		p := oneport.New(l, oneport.Config{TLS: &tls.Config{}, Timeout: 5 * time.Second})
		for _, says := range []string{"", "\x16", "\x16\x03\x01\x00\xff\x01", "GE"} {
			began := time.Now()
			conn := l.dial("192.0.2.2")
			if says != "" {
				_, err := conn.Write([]byte(says))
				require.NoError(t, err)
			}
			_, err := io.ReadAll(conn)
			require.NoError(t, err, "closed")
			assert.Equal(t, 5*time.Second, time.Since(began), "%q", says)
		}
		require.NoError(t, p.Close())
	})
}

// A flood of connections of unknown kind takes no more than its slots: other peers get through, and
// so does its own client when their time is over. Some beyond them have a second, and are HTTP's
// then, whose server can say why it does not serve them; others are closed.
func TestFlood(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var logged lines
		l := listenPipes()
		p := oneport.New(l, oneport.Config{MaxSniffed: 8, Silence: time.Minute,
			Log: slog.New(slog.NewTextHandler(&logged, nil))})
		streams, conns := accepted(p.Streams()), accepted(p.HTTP())
		var flood []net.Conn
		for range 50 {
			flood = append(flood, l.dial("192.0.2.66"))
		}
		synctest.Wait()
		const share, hurried = 4, 32
		for _, c := range flood[share+hurried:] {
			_, err := c.Read(make([]byte, 1))
			require.ErrorIs(t, err, io.EOF, "beyond its share")
		}
		began := time.Now()
		for range hurried {
			_ = (<-conns).Close()
		}
		assert.Equal(t, time.Second, time.Since(began))
		assert.Equal(t, 1, strings.Count(logged.String(), "too many connections"))
		good := l.dial("192.0.2.2")
		_, err := good.Write(hello)
		require.NoError(t, err)
		_ = (<-streams).Close()
		for range share {
			_ = (<-conns).Close()
		}
		again := l.dial("192.0.2.66")
		_, err = again.Write(hello)
		require.NoError(t, err)
		_ = (<-streams).Close()
		require.NoError(t, p.Close())
	})
}

// A server can decide which streams are its own; all else is HTTP's, unchanged.
func TestOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := listenPipes()
		p := oneport.New(l, oneport.Config{Silence: time.Second, Timeout: 5 * time.Second,
			Own: func(_ context.Context, start []byte) (own, more bool) {
				h, ok := frame.Opening(start)
				return ok && h.Session[0] == 1, !ok && frame.Incomplete(start)
			}})
		streams, conns := accepted(p.Streams()), accepted(p.HTTP())
		mine := frame.Hello{Session: [16]byte{1}, Token: make([]byte, frame.TokenLen),
			Limits: frame.EarlyLimits}.AppendTo(nil)
		broken := bytes.Clone(mine)
		broken[len(broken)-1] ^= 1
		for _, tc := range []struct {
			says []byte
			to   <-chan net.Conn
		}{
			{mine, streams}, {hello, conns}, {broken, conns}, {mine[:len(mine)-1], conns}, {[]byte("HELO\r\n"), conns},
		} {
			conn := l.dial("192.0.2.2")
			go func() {
				for _, b := range bytewise(tc.says) {
					_, _ = conn.Write(b)
				}
			}()
			c := <-tc.to
			got := make([]byte, len(tc.says))
			_, err := io.ReadFull(c, got)
			require.NoError(t, err)
			assert.Equal(t, tc.says, got)
			_ = c.Close()
			_ = conn.Close()
		}
		require.NoError(t, p.Close())
	})
}

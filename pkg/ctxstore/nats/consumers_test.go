package nats_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/pkg/ctxstore"
	"github.com/hhfr/hhfr/pkg/ctxstore/nats"
)

// Servers allow a stream 1,000 consumers. Lists and watches, however many there are and however
// they end, leave none behind; those of killed processes go within seconds.
func TestConsumersDoNotAccumulate(t *testing.T) {
	s := serve(t)
	b := s.open(t, nats.Config{}, closed)
	for i := range 3 {
		_, err := b.Put(t.Context(), fmt.Sprintf("urn:example:%d", i), []byte("value"), ctxstore.PutOptions{})
		require.NoError(t, err)
	}
	list := func(ctx context.Context, most int) (n int, err error) {
		for _, err := range b.List(ctx, "urn:example:") {
			if err != nil {
				return n, err
			}
			if n++; n == most {
				break
			}
		}
		return n, nil
	}
	killed := 0
	for i := range 3000 {
		ctx, cancel := context.WithCancel(t.Context())
		switch i % 12 {
		case 0:
			s.killed(t, false)
			killed++
		case 6:
			s.killed(t, true)
			killed++
		case 1, 7:
			go cancel() // before it, in it or after it
			if _, err := list(ctx, 0); err != nil {
				require.ErrorIs(t, err, context.Canceled, "list %d", i)
			}
		case 2, 8:
			changes, err := b.Watch(ctx, "urn:example:")
			require.NoError(t, err, "watch %d", i)
			cancel()
			for range changes {
			}
		case 3:
			n, err := list(ctx, 1)
			require.NoError(t, err, "list %d", i)
			require.Equal(t, 1, n)
		default:
			n, err := list(ctx, 0)
			require.NoError(t, err, "list %d", i)
			require.Equal(t, 3, n)
		}
		cancel()
	}
	left := s.stream(t).ListConsumers(t.Context())
	n := 0
	for c := range left.Info() {
		n++
		assert.LessOrEqual(t, c.Config.InactiveThreshold, 10*time.Second)
	}
	require.NoError(t, left.Err())
	assert.LessOrEqual(t, n, killed)
}

// Where a stream has all the consumers that it may have, a list waits for one to go.
func TestListWaitsForAConsumerToGo(t *testing.T) {
	s := serve(t)
	refused := make(chan struct{}, 1)
	b, err := nats.Open(t.Context(), "nats://127.0.0.1/contexts?storage=memory", nats.Config{
		Dial: func(string, string) (net.Conn, error) {
			c, err := s.InProcessConn()
			return &listeningConn{c, refused}, err
		},
	})
	require.NoError(t, err)
	closed(t, b)
	stream := s.stream(t)
	for i := 0; err == nil; i++ {
		_, err = stream.CreateConsumer(t.Context(),
			jetstream.ConsumerConfig{Durable: fmt.Sprint("consumer", i), MemoryStorage: true})
	}
	require.ErrorIs(t, err, jetstream.ErrMaximumConsumersLimit)
	go func() {
		<-refused
		assert.NoError(t, stream.DeleteConsumer(t.Context(), "consumer0"))
	}()
	for _, err := range b.List(t.Context(), "") {
		require.NoError(t, err)
	}
}

// listeningConn hears that the servers refuse a consumer.
type listeningConn struct {
	net.Conn
	refused chan struct{}
}

func (c *listeningConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if bytes.Contains(b[:n], []byte("maximum consumers limit")) {
		select {
		case c.refused <- struct{}{}:
		default:
		}
	}
	return n, err
}

func (s served) stream(t testing.TB) jetstream.Stream {
	js, err := jetstream.New(s.connect(t))
	require.NoError(t, err)
	stream, err := js.Stream(t.Context(), "KV_contexts")
	require.NoError(t, err)
	return stream
}

// killed is a process that is gone, with its connection, while it lists or watches.
func (s served) killed(t testing.TB, watches bool) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var dead atomic.Bool
	asked := make(chan struct{})
	b, err := nats.Open(ctx, "nats://127.0.0.1/contexts", nats.Config{ReadOnly: true,
		Dial: func(string, string) (net.Conn, error) {
			if dead.Load() {
				return nil, errors.New("killed")
			}
			c, err := s.InProcessConn()
			return &mortalConn{Conn: c, killed: func() {
				if !dead.Swap(true) {
					close(asked)
					_ = c.Close()
					cancel()
				}
			}}, err
		}})
	require.NoError(t, err)
	if watches {
		changes, err := b.Watch(ctx, "")
		require.NoError(t, err)
		<-asked
		for range changes {
		}
	} else {
		for _, err := range b.List(ctx, "") {
			require.ErrorIs(t, err, context.Canceled)
		}
	}
	require.NoError(t, b.Close())
}

// mortalConn breaks where messages are asked for that a consumer has.
type mortalConn struct {
	net.Conn
	killed func()
}

func (c *mortalConn) Write(b []byte) (int, error) {
	if bytes.Contains(b, []byte("CONSUMER.MSG.NEXT")) {
		c.killed()
	}
	return c.Conn.Write(b)
}

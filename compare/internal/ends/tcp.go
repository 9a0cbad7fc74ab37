package ends

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
)

// loopback listens at a free port.
func loopback(ctx context.Context) (net.Listener, error) {
	return new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
}

// connected returns a connection, whose other end is served.
func connected(ctx context.Context, serve func(net.Conn)) (conn net.Conn, end func() error, err error) {
	l, err := loopback(ctx)
	if err != nil {
		return nil, nil, err
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		c, err := l.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		serve(c)
	}()
	conn, err = new(net.Dialer).DialContext(ctx, "tcp", l.Addr().String())
	return conn, func() error {
		err := errors.Join(conn.Close(), l.Close())
		<-done
		return err
	}, err
}

// openRaw sends and returns 64 bytes over a connection: what no protocol can be below.
func openRaw(ctx context.Context, messages [][]byte) (*contestant, error) {
	conn, end, err := connected(ctx, func(c net.Conn) {
		buf := make([]byte, rawLength)
		for {
			if _, err := io.ReadFull(c, buf); err != nil {
				return
			}
			if _, err := c.Write(buf); err != nil {
				return
			}
		}
	})
	if err != nil {
		return nil, err
	}
	buf := make([]byte, rawLength)
	return each(messages, func(m []byte) error {
		if _, err := conn.Write(m[:rawLength]); err != nil {
			return err
		}
		_, err := io.ReadFull(conn, buf)
		return err
	}, end), nil
}

// openFramed sends messages with their length before them, in long writes.
func openFramed(ctx context.Context, messages [][]byte) (*contestant, error) {
	var c arrivals
	conn, end, err := connected(ctx, func(conn net.Conn) {
		r, buf := bufio.NewReaderSize(conn, 64<<10), make([]byte, longestMessage)
		for {
			n, err := binary.ReadUvarint(r)
			if err != nil || n > longestMessage {
				return
			}
			if _, err := io.ReadFull(r, buf[:n]); err != nil {
				return
			}
			c.arrived()
		}
	})
	if err != nil {
		return nil, err
	}
	w := bufio.NewWriterSize(conn, 64<<10)
	var head []byte
	return c.oneWay(messages, func(m []byte) error {
		head = binary.AppendUvarint(head[:0], uint64(len(m)))
		if _, err := w.Write(head); err != nil {
			return err
		}
		_, err := w.Write(m)
		return err
	}, w.Flush, end), nil
}

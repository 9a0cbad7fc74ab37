package real

import (
	"bufio"
	"compress/zlib"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"

	"github.com/klauspost/compress/zstd"
)

// flushWriter is a compressor that can be read to the end of what was written before Flush.
type flushWriter interface {
	io.Writer
	Flush() error
}

// compressor makes one stream with one window of all connections.
type compressor struct {
	name   string
	writer func(io.Writer) (flushWriter, error)
	reader func(io.Reader) (io.Reader, error)
}

var compressors = []compressor{
	{"zlib", func(w io.Writer) (flushWriter, error) { return zlib.NewWriterLevel(w, zlib.BestCompression) },
		func(r io.Reader) (io.Reader, error) { return zlib.NewReader(r) }},
	{"zstd", bestZstd,
		func(r io.Reader) (io.Reader, error) { return zstd.NewReader(r, zstd.WithDecoderConcurrency(1)) }},
}

// tunnelHeader is the number of a connection, and how many bytes of it follow: 0 ends a direction.
const tunnelHeader = 4

// tunnel is one end of a tunnel: one TCP connection, over which all others go, as one stream of a
// compressor in each direction, flushed after each read.
type tunnel struct {
	link   net.Conn
	out    *bufio.Writer
	server string // where the far end connects to; "": the near end
	with   compressor

	mu     sync.Mutex
	packed flushWriter
	conns  map[uint16]*tunneled
	last   uint16
}

// tunneled is a connection, and how many of its directions have ended.
type tunneled struct {
	net.Conn
	ended int
}

// RunTunnel is the process of an end, until in ends: near COMPRESSOR ADDRESS of the far one, or far
// COMPRESSOR ADDRESS of the server. It prints its address.
func RunTunnel(ctx context.Context, args []string, in io.Reader, out io.Writer) error {
	if len(args) != 3 {
		return errors.New("near|far COMPRESSOR ADDRESS")
	}
	t := &tunnel{conns: map[uint16]*tunneled{}}
	for _, c := range compressors {
		if c.name == args[1] {
			t.with = c
		}
	}
	if t.with.writer == nil {
		return fmt.Errorf("no compressor %q", args[1])
	}
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	if args[0] == "near" {
		if t.link, err = new(net.Dialer).DialContext(ctx, "tcp", args[2]); err != nil {
			return err
		}
		if err := t.open(); err != nil {
			return err
		}
		go t.accept(l)
	} else {
		t.server = args[2]
		go t.wait(ctx, l)
	}
	fmt.Fprintln(out, l.Addr())
	_, err = io.Copy(io.Discard, in)
	return err
}

// wait accepts the near end.
func (t *tunnel) wait(ctx context.Context, l net.Listener) {
	var err error
	if t.link, err = l.Accept(); err == nil && t.open() == nil {
		t.receive(ctx)
	}
}

func (t *tunnel) open() (err error) {
	t.out = bufio.NewWriterSize(t.link, 1<<17)
	t.packed, err = t.with.writer(t.out)
	return err
}

// accept takes the connections of clients.
func (t *tunnel) accept(l net.Listener) {
	go t.receive(context.Background())
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		t.mu.Lock()
		t.last++
		id := t.last
		conn := &tunneled{Conn: c}
		t.conns[id] = conn
		t.mu.Unlock()
		go t.forward(id, conn)
	}
}

// forward sends what comes from a connection.
func (t *tunnel) forward(id uint16, c *tunneled) {
	b := make([]byte, 32<<10)
	for {
		n, err := c.Read(b)
		if n > 0 && t.send(id, b[:n]) != nil {
			return
		}
		if err != nil {
			break
		}
	}
	if t.send(id, nil) == nil {
		t.end(id, c)
	}
}

func (t *tunnel) send(id uint16, b []byte) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	head := binary.BigEndian.AppendUint16(nil, id)
	head = binary.BigEndian.AppendUint16(head, uint16(len(b)))
	if _, err := t.packed.Write(append(head, b...)); err != nil {
		return err
	}
	if err := t.packed.Flush(); err != nil {
		return err
	}
	return t.out.Flush()
}

// end counts a direction that has ended.
func (t *tunnel) end(id uint16, c *tunneled) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if c.ended++; c.ended == 2 {
		c.Close()
		delete(t.conns, id)
	}
}

// receive passes on what comes over the link.
func (t *tunnel) receive(ctx context.Context) {
	packed, err := t.with.reader(bufio.NewReader(t.link))
	if err != nil {
		return
	}
	for head := make([]byte, tunnelHeader); ; {
		if _, err := io.ReadFull(packed, head); err != nil {
			return
		}
		id, b := binary.BigEndian.Uint16(head), make([]byte, binary.BigEndian.Uint16(head[2:]))
		if _, err := io.ReadFull(packed, b); err != nil {
			return
		}
		t.mu.Lock()
		c := t.conns[id]
		t.mu.Unlock()
		if c == nil {
			if t.server == "" || len(b) == 0 {
				continue
			}
			made, err := new(net.Dialer).DialContext(ctx, "tcp", t.server)
			if err != nil {
				return
			}
			c = &tunneled{Conn: made}
			t.mu.Lock()
			t.conns[id] = c
			t.mu.Unlock()
			go t.forward(id, c)
		}
		if len(b) > 0 {
			_, _ = c.Write(b) // one that is gone says so to forward
			continue
		}
		if tcp, ok := c.Conn.(*net.TCPConn); ok {
			_ = tcp.CloseWrite()
		}
		t.end(id, c)
	}
}

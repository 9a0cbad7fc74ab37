package streamer_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"maps"
	"net"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/pkg/streamer"
	"github.com/hhfr/hhfr/pkg/streamer/frame"
	"github.com/hhfr/hhfr/pkg/streamer/inproc"
)

// rawCoder is a coder whose content is the octets themselves. A body that begins with '#' and a digit travels under the shape number of that digit, whose
// "serialization" is shapes[digit]; others under 0.
type rawCoder struct {
	shapes map[uint64][]byte // what this end sends
	refer  map[uint64]bool   // numbers first announced by reference
	text   bool              // all segments of a body but the first are text
	refuse func(segment []byte) error

	announced map[uint64]bool
	store     map[[32]byte][]byte // what this end has
	table     map[uint64][]byte   // what it received; nil: lacks it
}

func newRawCoder() *rawCoder {
	return &rawCoder{shapes: map[uint64][]byte{}, refer: map[uint64]bool{}, announced: map[uint64]bool{}, store: map[[32]byte][]byte{}, table: map[uint64][]byte{}}
}

func (c *rawCoder) Split(lane uint64, head []byte, body io.Reader, most int, emit func(bool, uint64, bool, []byte) error) error {
	for len(head) > 0 {
		n := min(len(head), most)
		if err := emit(true, 0, false, head[:n]); err != nil {
			return err
		}
		head = head[n:]
	}
	pooled := buffers.Get().(*[]byte)
	defer buffers.Put(pooled)
	buf := (*pooled)[:most]
	shape, first := uint64(0), true
	for {
		n, err := io.ReadFull(body, buf)
		if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
			return err
		}
		if first && n > 1 && buf[0] == '#' {
			shape = uint64(buf[1] - '0')
		}
		if first || n > 0 {
			if err := emit(false, shape, c.text && !first, buf[:n]); err != nil {
				return err
			}
		}
		if first = false; err != nil {
			return nil
		}
	}
}

var buffers = sync.Pool{New: func() any { b := make([]byte, frame.MaxPayload); return &b }}

func (c *rawCoder) Announce(number uint64) (fp [32]byte, full []byte, ok bool) {
	if c.announced[number] {
		return fp, nil, false
	}
	c.announced[number] = true
	fp = sha256.Sum256(c.shapes[number])
	if c.refer[number] {
		return fp, nil, true
	}
	return fp, c.shapes[number], true
}

func (c *rawCoder) Epoch(open map[uint64]int, yield func(uint64, [32]byte)) {
	for _, number := range slices.Sorted(maps.Keys(c.announced)) {
		if open[number] > 0 {
			yield(number, sha256.Sum256(c.shapes[number]))
		} else {
			delete(c.announced, number)
		}
	}
}

func (c *rawCoder) Lacks(number uint64) ([]byte, error) { return c.shapes[number], nil }

func (c *rawCoder) Refer(number uint64, fp [32]byte) (bool, error) {
	c.table[number] = c.store[fp]
	return c.table[number] != nil, nil
}

func (c *rawCoder) Define(number uint64, serialization []byte) (fp [32]byte, err error) {
	if bytes.HasPrefix(serialization, []byte("bad")) {
		return fp, errors.New("no shape")
	}
	fp = sha256.Sum256(serialization)
	c.store[fp] = serialization
	c.table[number] = serialization
	return fp, nil
}

func (c *rawCoder) Known(number uint64) (known, announced bool) {
	s, announced := c.table[number]
	return s != nil, announced
}

func (c *rawCoder) Forget(number uint64) { delete(c.table, number) }

func (c *rawCoder) Price() int64 { return 100 }

func (c *rawCoder) NewJoin(number uint64) (func(dst, segment []byte, text, last bool) ([]byte, error), error) {
	return func(dst, segment []byte, text, last bool) ([]byte, error) {
		if c.refuse != nil {
			if err := c.refuse(segment); err != nil {
				return dst, err
			}
		}
		return append(dst, segment...), nil
	}, nil
}

var session = [16]byte{1, 2, 3}

// pair is a stream with both its ends over a pipe in memory.
type pair struct {
	a, b           *streamer.Stream
	codera, coderb *rawCoder
}

type pairing struct {
	buffer   int
	a, b     streamer.Config
	handlera streamer.Handler
	handlerb streamer.Handler
	codera   *rawCoder
	coderb   *rawCoder
	packera  *countPacker
	packerb  *countPacker
}

func echo(ctx context.Context, x *streamer.Exchange) {
	if x.OneWay() {
		_, _ = io.Copy(io.Discard, x.Message().Body)
		return
	}
	_ = x.Reply(ctx, x.Message())
}

func connect(t testing.TB, p pairing) *pair {
	t.Helper()
	here, there := inproc.Pipe(p.buffer)
	return connectOver(t, p, here, there)
}

func connectOver(t testing.TB, p pairing, here, there net.Conn) *pair {
	t.Helper()
	if p.codera == nil {
		p.codera = newRawCoder()
	}
	if p.coderb == nil {
		p.coderb = newRawCoder()
	}
	p.a.Initiator, p.a.Session, p.a.Token, p.a.Representation, p.a.Coder, p.a.Handler = true, session, make([]byte, 16), 1, p.codera, p.handlera
	p.b.Accept = func(_ context.Context, h frame.Hello) (streamer.Coder, streamer.Handler, error) {
		if p.packerb != nil {
			return p.packerb, p.handlerb, nil
		}
		return p.coderb, p.handlerb, nil
	}
	if p.packera != nil {
		p.a.Coder = p.packera
	}
	accepted := make(chan *streamer.Stream, 1)
	go func() {
		s, _ := streamer.Over(context.Background(), there, p.b)
		accepted <- s
	}()
	a, err := streamer.Over(context.Background(), here, p.a)
	require.NoError(t, err)
	b := <-accepted
	require.NotNil(t, b)
	t.Cleanup(func() {
		_ = a.Close()
		_ = b.Close()
	})
	return &pair{a, b, p.codera, p.coderb}
}

func body(t testing.TB, m *streamer.Message) string {
	t.Helper()
	b, err := m.ReadAll(1 << 30)
	require.NoError(t, err)
	return string(b)
}

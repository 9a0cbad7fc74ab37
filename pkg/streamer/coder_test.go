package streamer_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/frame"
	"github.com/hhfr/hhfr/internal/inproc"
	"github.com/hhfr/hhfr/internal/shape"
	"github.com/hhfr/hhfr/internal/shape/learn"
	"github.com/hhfr/hhfr/internal/shape/program"
	"github.com/hhfr/hhfr/internal/shape/transit"
	"github.com/hhfr/hhfr/internal/wire"
	"github.com/hhfr/hhfr/pkg/streamer"
)

// rawCoder is a coder whose content is the bytes themselves, as text, but of messages of a kind
// that it has: these have shapes.
type rawCoder struct {
	kinds    []*kind
	believes map[shape.Fingerprint]bool // shapes that it takes the peer to have

	mu    sync.Mutex
	sure  map[shape.Fingerprint]bool
	store map[shape.Fingerprint]*program.Program // what this end has
}

func newRawCoder(kinds ...*kind) *rawCoder {
	c := &rawCoder{kinds: kinds, believes: map[shape.Fingerprint]bool{}, sure: map[shape.Fingerprint]bool{},
		store: map[shape.Fingerprint]*program.Program{}}
	for _, k := range kinds {
		c.store[k.Fingerprint()] = k.Program
	}
	return c
}

// kind is a shape with one text in it.
type kind struct {
	*program.Program
	begin, end string
}

// newKind makes a kind that has its name, and names enough for its shape to have about so many
// bytes on its way.
func newKind(name string, size int) *kind {
	k := &kind{begin: "<" + name + ">", end: "</" + name + ">"}
	rnd := rand.New(rand.NewPCG(uint64(size), uint64(len(name))))
	for len(k.begin) < size {
		k.begin += "<x"
		for range 60 {
			k.begin += fmt.Sprintf("%016x", rnd.Uint64())
		}
		k.begin += "/>"
	}
	s, err := learn.FromMessage([]byte(k.message("text")))
	if err != nil {
		panic(err)
	}
	k.Program = program.Compile(s)
	return k
}

var (
	one   = newKind("one", 0)
	two   = newKind("two", 0)
	three = newKind("three", 0)
)

func (k *kind) message(text string) string { return k.begin + text + k.end }

func (k *kind) Fingerprint() shape.Fingerprint { return k.Shape().Fingerprint() }

// content is that of a message of the kind.
func (k *kind) content(text string) string {
	var all []byte
	var s program.Splitter
	s.Reset(k.Program, frame.MaxPayload, true, func(_ bool, segment []byte) error {
		all = append(all, segment...)
		return nil
	})
	if err := s.Split([]byte(k.message(text))); err != nil {
		panic(err)
	}
	return string(all)
}

// full announces the kind under a number, reference by its name.
func (k *kind) full(number uint64) frame.Shape {
	packed := transit.Pack(nil, k.Shape().Octets(), nil)
	return frame.Shape{Number: number, Form: frame.Full, Total: uint64(len(packed)), Piece: packed}
}

func (k *kind) reference(number uint64) frame.Shape {
	return frame.Shape{Number: number, Form: frame.Reference, Fingerprint: k.Fingerprint()}
}

func (c *rawCoder) Stages() uint64 { return 0 }

func (c *rawCoder) PeerHas(int) []shape.Fingerprint { return nil }

func (c *rawCoder) Compression() *wire.Compression { return nil }

func (c *rawCoder) Has(fp shape.Fingerprint) (has, sure bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.sure[fp] || c.believes[fp], c.sure[fp]
}

func (c *rawCoder) Learned(p *program.Program) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sure[p.Shape().Fingerprint()] = true
}

func (c *rawCoder) Find(fp shape.Fingerprint) *program.Program {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.store[fp]
}

func (c *rawCoder) Keep(s *shape.Shape) *program.Program {
	p := program.Compile(s)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.store[s.Fingerprint()] = p
	return p
}

func (c *rawCoder) Restart(uint64) {}

func (c *rawCoder) Split(_ uint64, most int, emit wire.Emit) wire.SplitStep {
	return &rawSplit{c: c, most: most, emit: emit}
}

// rawSplit cuts into pieces as long as may be.
type rawSplit struct {
	c     *rawCoder
	most  int
	emit  wire.Emit
	body  []byte
	begun bool
}

func (s *rawSplit) Head(head []byte) error { return s.text(true, head, true) }

func (s *rawSplit) All(body []byte) error {
	if k := s.kind(body); k != nil {
		return s.under(k, body)
	}
	return s.text(false, body, true)
}

// kind is that of a body, by its first name.
func (s *rawSplit) kind(body []byte) *kind {
	for _, k := range s.c.kinds {
		if name, _, _ := strings.Cut(k.begin, ">"); bytes.HasPrefix(body, []byte(name+">")) {
			return k
		}
	}
	return nil
}

func (s *rawSplit) under(k *kind, body []byte) error {
	var parts [][]byte
	var by program.Splitter
	by.Reset(k.Program, s.most, true, func(_ bool, segment []byte) error {
		parts = append(parts, bytes.Clone(segment))
		return nil
	})
	if err := by.Split(body); err != nil {
		return err
	}
	for i, p := range parts {
		if err := s.emit(false, wire.Part{There: true, First: i == 0, Last: i == len(parts)-1, Program: k.Program,
			Content: p}); err != nil {
			return err
		}
	}
	return nil
}

func (s *rawSplit) text(head bool, text []byte, last bool) error {
	for first := head || !s.begun; ; first = false {
		n := min(len(text), s.most)
		s.begun = s.begun || !head
		if err := s.emit(head, wire.Part{There: true, First: first, Last: last && n == len(text),
			Content: text[:n]}); err != nil {
			return err
		}
		if text = text[n:]; len(text) == 0 {
			return nil
		}
	}
}

func (s *rawSplit) Write(p []byte) error {
	s.body = append(s.body, p...)
	if n := len(s.body) - len(s.body)%s.most; n > 0 && s.kind(s.body) == nil {
		return s.out(n)
	}
	return nil
}

func (s *rawSplit) out(n int) error {
	err := s.text(false, s.body[:n], false)
	s.body = s.body[n:]
	return err
}

func (s *rawSplit) Flush(bool) (int64, error) {
	if len(s.body) == 0 {
		return 0, nil
	}
	return 0, s.out(len(s.body))
}

func (s *rawSplit) Close() error {
	if !s.begun {
		return s.All(s.body)
	}
	return s.text(false, s.body, true)
}

func (s *rawSplit) Free() {}

var session = [16]byte{1, 2, 3}

// pair is a stream with both its ends over a pipe in memory.
type pair struct {
	a, b *streamer.Stream
}

type pairing struct {
	buffer   int
	a, b     streamer.Config
	handlera streamer.ExchangeHandler
	handlerb streamer.ExchangeHandler
	codera   streamer.Coder
	coderb   streamer.Coder
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
	p.a.Initiator, p.a.Session, p.a.Token, p.a.Representation, p.a.Coder, p.a.Handler = true, session, make([]byte, 16),
		1, p.codera, p.handlera
	p.b.Accept = func(_ context.Context, h frame.Hello) (streamer.Admission, error) {
		return streamer.Admission{Coder: p.coderb, Handler: p.handlerb}, nil
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
	return &pair{a, b}
}

func body(t testing.TB, m *streamer.Message) string {
	t.Helper()
	b, err := m.ReadAll(1 << 30)
	require.NoError(t, err)
	return string(b)
}

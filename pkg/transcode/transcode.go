// Package transcode turns messages into another representation and back: [Pack] writes them as one hhfr stream into a file, which package capture reads again.
package transcode

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"iter"
	"sync"

	"github.com/klauspost/compress/zstd"

	"github.com/hhfr/hhfr/pkg/codec/binary"
	"github.com/hhfr/hhfr/pkg/ctxstore"
	"github.com/hhfr/hhfr/pkg/ctxstore/memory"
	"github.com/hhfr/hhfr/pkg/streamer"
	"github.com/hhfr/hhfr/pkg/streamer/frame"
	"github.com/hhfr/hhfr/pkg/streamer/inproc"
)

// Input is a message to pack.
type Input struct {
	Name string
	Body []byte
}

// Config says how [Pack] works. The zero value works.
type Config struct {
	// Store keeps the shapes, which the stream then only refers to: whoever reads it needs the store. nil: the shapes are in the stream.
	Store ctxstore.Store
	// SyncBytes is as in streamer.Config.
	SyncBytes int64
	// Without are stages that the stream does without, as in binary.Options.
	Without uint64
	// Measure makes Pack count what other ways would take, and times.
	Measure bool
}

// Figures are what one message, or all together, took: octets, but for times, in nanoseconds, and counts. Gzip and Zstd are of each message alone.
type Figures struct {
	Name       string `json:"name,omitempty"` // the file, or - for stdin
	Raw        int64  `json:"raw_octets"`     // the message as it is
	Gzip       int64  `json:"gzip_octets"`    // with gzip, each message alone
	Zstd       int64  `json:"zstd_octets"`    // with zstd, each message alone
	Shape      int64  `json:"shape_octets"`   // shapes announced for it
	Content    int64  `json:"content_octets"` // content
	Frames     int64  `json:"frame_octets"`   // all frames, content included
	Split      int64  `json:"split_ns"`       // message to content
	Join       int64  `json:"join_ns"`        // content to message
	Learned    int64  `json:"shapes_learned"` // new shapes
	Widened    int64  `json:"shapes_widened"` // shapes made wider
	Exceptions int64  `json:"exceptions"`     // values that travelled as text, since their type does not give back their text
}

func (f *Figures) add(o Figures) {
	f.Raw, f.Gzip, f.Zstd, f.Shape = f.Raw+o.Raw, f.Gzip+o.Gzip, f.Zstd+o.Zstd, f.Shape+o.Shape
	f.Content, f.Frames, f.Split, f.Join = f.Content+o.Content, f.Frames+o.Frames, f.Split+o.Split, f.Join+o.Join
	f.Learned, f.Widened, f.Exceptions = f.Learned+o.Learned, f.Widened+o.Widened, f.Exceptions+o.Exceptions
}

// ErrDifferent says that a message did not come back as it was packed; it is a fault of this program.
var ErrDifferent = errors.New("a message did not come back as it was packed")

// Pack writes the messages as one direction of a stream, one-way messages on lane 0, to w. Each is joined again and compared before the next is taken. each, if given, hears of every message; total is the sum.
func Pack(ctx context.Context, w io.Writer, messages iter.Seq2[Input, error], cfg Config, each func(Figures) error) (total Figures, err error) {
	p := &packer{cfg: cfg, back: make(chan []byte), over: make(chan struct{})}
	if err := p.open(ctx, w); err != nil {
		return total, err
	}
	for m, err := range messages {
		if err != nil {
			return total, errors.Join(err, p.close())
		}
		f, err := p.message(ctx, m)
		if err != nil {
			_ = p.close() // it would say the same
			return total, fmt.Errorf("%s: %w", m.Name, err)
		}
		total.add(f)
		if each != nil {
			if err := each(f); err != nil {
				return total, errors.Join(err, p.close())
			}
		}
	}
	return total, p.close()
}

// packer is a stream between two ends in this process, one of which writes to a file as well.
type packer struct {
	cfg      Config
	stores   []ctxstore.Store // made here
	out      *tee
	coder    *timed // of the end that sends
	reader   *timed
	from, to *streamer.Stream
	back     chan []byte
	over     chan struct{} // closed when nobody waits for back any more

	mu      sync.Mutex
	current Figures
}

func (p *packer) store() ctxstore.Store {
	if p.cfg.Store != nil {
		return p.cfg.Store
	}
	s := memory.New(memory.Config{})
	p.stores = append(p.stores, s)
	return s
}

func (p *packer) open(ctx context.Context, w io.Writer) error {
	const buffer = 256 << 10
	here, there := inproc.Pipe(buffer)
	p.out = &tee{Conn: here, w: w}
	p.coder = &timed{Coder: binary.NewBook(ctxstore.Shapes{Store: p.store()}).Coder(binary.Options{Refer: p.cfg.Store != nil, Without: p.cfg.Without})}
	p.reader = &timed{Coder: binary.NewBook(ctxstore.Shapes{Store: p.store()}).Coder(binary.Options{})}
	var session [16]byte
	if _, err := rand.Read(session[:]); err != nil {
		return err
	}
	var wg sync.WaitGroup
	var err1, err2 error
	wg.Go(func() {
		p.to, err1 = streamer.Over(ctx, there, streamer.Config{Accept: func(_ context.Context, h streamer.Hello) (streamer.Coder, streamer.Handler, error) {
			p.reader.PeerLimits(int(h.Limits.MaxShapes), int64(h.Limits.MaxShapeBytes))
			return p.reader, p.receive, nil
		}})
	})
	wg.Go(func() {
		p.from, err2 = streamer.Over(ctx, p.out, streamer.Config{Initiator: true, Session: session, Token: make([]byte, frame.TokenLen), Representation: frame.Binary, Coder: p.coder,
			SyncBytes: p.cfg.SyncBytes, Events: p.event})
	})
	wg.Wait()
	if err := errors.Join(err1, err2); err != nil {
		return err
	}
	limits := p.from.Hello().Limits
	p.coder.PeerLimits(int(limits.MaxShapes), int64(limits.MaxShapeBytes))
	return nil
}

// event attributes octets to the message that is on its way.
func (p *packer) event(e streamer.Event) {
	if e.Dir != streamer.Sent {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	switch e.Kind {
	case frame.KindShape:
		p.current.Shape += int64(e.Octets)
	case frame.KindData:
		p.current.Frames += int64(e.Octets)
		p.current.Content += int64(e.Payload)
	default:
	}
}

// receive joins at the other end.
func (p *packer) receive(ctx context.Context, x *streamer.Exchange) {
	body, err := x.Message().ReadAll(1 << 40)
	if err != nil {
		body = nil
	}
	select {
	case p.back <- body:
	case <-p.over:
	case <-ctx.Done():
	}
}

func (p *packer) message(ctx context.Context, m Input) (Figures, error) {
	before := p.coder.Counts()
	p.mu.Lock()
	p.current = Figures{Name: m.Name, Raw: int64(len(m.Body))}
	p.mu.Unlock()
	if err := p.from.Lane(0).Send(ctx, streamer.NewMessage(nil, m.Body)); err != nil {
		return Figures{}, err
	}
	select {
	case got := <-p.back:
		if !bytes.Equal(got, m.Body) {
			return Figures{}, ErrDifferent
		}
	case <-p.from.Done():
		return Figures{}, errors.Join(p.from.Err(), p.out.err)
	case <-ctx.Done():
		return Figures{}, context.Cause(ctx)
	}
	if p.out.err != nil {
		return Figures{}, p.out.err
	}
	after := p.coder.Counts()
	p.mu.Lock()
	f := p.current
	p.mu.Unlock()
	f.Split, f.Join = p.coder.split.Swap(0), p.reader.join.Swap(0)
	f.Learned, f.Widened, f.Exceptions = after.Learned-before.Learned, after.Widened-before.Widened, after.Exceptions-before.Exceptions
	if p.cfg.Measure {
		var err error
		if f.Gzip, f.Zstd, err = alone(m.Body); err != nil {
			return f, err
		}
	}
	return f, nil
}

// alone compresses one message by itself.
func alone(b []byte) (gz, zs int64, err error) {
	var buf bytes.Buffer
	g := gzip.NewWriter(&buf)
	if _, err = g.Write(b); err == nil {
		err = g.Close()
	}
	gz = int64(buf.Len())
	z, err2 := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1))
	if err = errors.Join(err, err2); err != nil {
		return 0, 0, err
	}
	return gz, int64(len(z.EncodeAll(b, nil))), z.Close()
}

func (p *packer) close() error {
	close(p.over)
	err := p.from.Close()
	<-p.to.Done()
	_ = p.to.Close()
	for _, s := range p.stores {
		err = errors.Join(err, s.Close())
	}
	return errors.Join(err, p.out.err)
}

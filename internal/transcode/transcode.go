// Package transcode turns messages into another representation and back: [Pack] writes them as one
// hhfr stream into a file, which package capture reads again.
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
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/hhfr/hhfr/internal/codec/binary"
	"github.com/hhfr/hhfr/internal/coders"
	"github.com/hhfr/hhfr/internal/frame"
	"github.com/hhfr/hhfr/internal/shape/program"
	"github.com/hhfr/hhfr/internal/wire"
	"github.com/hhfr/hhfr/pkg/ctxstore"
	"github.com/hhfr/hhfr/pkg/ctxstore/memory"
	"github.com/hhfr/hhfr/pkg/schema"
)

// Packable is a message to pack.
type Packable struct {
	Name string
	Body io.Reader // read to its end before the next message is asked for
}

// atOnce is how much of a message is in memory, in bytes. A shorter one is split as a whole; a
// longer one as it is read, which takes as much of its beginning to learn its shape.
const atOnce = 4 << 20

// Config configures [Pack]. The zero value works.
type Config struct {
	// Store receives the shapes, to which the stream then only refers: its readers need the store.
	// nil: the shapes are in the stream.
	Store ctxstore.Store
	// SyncBytes is as in wire.EncoderConfig.
	SyncBytes int64
	// Description describes the messages, also for whoever reads the file; nil: nothing does.
	Description binary.Describer
	// Schema describes messages of one kind; nil: nothing does.
	Schema *schema.Schema
	// Without are stages that are left out of the stream, as in binary.Options.
	Without uint64
	// Measure makes Pack measure other compressions, and times.
	Measure bool
}

// Figures are the measurements of one message, or of all together: bytes, except for times in
// nanoseconds, and counts. Gzip and Zstd are of each message alone.
type Figures struct {
	Name    string `json:"name,omitempty"` // the file, or - for stdin
	Raw     int64  `json:"raw_octets"`     // the message itself
	Gzip    int64  `json:"gzip_octets"`    // with gzip, each message alone
	Zstd    int64  `json:"zstd_octets"`    // with zstd, each message alone
	Shape   int64  `json:"shape_octets"`   // shapes announced for it
	Content int64  `json:"content_octets"` // content
	Frames  int64  `json:"frame_octets"`   // all frames, content included
	Split   int64  `json:"split_ns"`       // message to content
	Join    int64  `json:"join_ns"`        // content to message
	Learned int64  `json:"shapes_learned"` // new shapes
	Widened int64  `json:"shapes_widened"` // shapes made wider
	// values that traveled as text, since their type does not reproduce their text
	Exceptions int64 `json:"exceptions"`
	Drifted    int64 `json:"drifted"` // messages that are not as their description says
}

func (f *Figures) add(o Figures) {
	f.Raw, f.Gzip, f.Zstd, f.Shape = f.Raw+o.Raw, f.Gzip+o.Gzip, f.Zstd+o.Zstd, f.Shape+o.Shape
	f.Content, f.Frames, f.Split, f.Join = f.Content+o.Content, f.Frames+o.Frames, f.Split+o.Split, f.Join+o.Join
	f.Learned, f.Widened, f.Exceptions = f.Learned+o.Learned, f.Widened+o.Widened, f.Exceptions+o.Exceptions
	f.Drifted += o.Drifted
}

// ErrDifferent says that a message did not come back as it was packed; it is a fault of this
// program.
var ErrDifferent = errors.New("a message did not come back as it was packed")

// Pack writes the messages as one direction of a stream, one-way messages on lane 0, to w. Each is
// joined again and compared before the next is read. each, if given, is called with every message;
// total is the sum.
func Pack(ctx context.Context, w io.Writer, messages iter.Seq2[Packable, error], cfg Config,
	each func(Figures) error) (total Figures, err error) {
	p, err := open(w, cfg)
	if err != nil {
		return total, err
	}
	for m, err := range messages {
		if err != nil {
			return total, errors.Join(err, p.close())
		}
		f, err := p.message(m, cfg.Measure)
		if err == nil {
			err = context.Cause(ctx)
		}
		if err != nil {
			_ = p.close() // it would return the same error
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

// filePacker is a direction of a stream that goes to a file and through a decoder.
type filePacker struct {
	out    io.Writer
	stores []ctxstore.Store // created here
	coder  *binary.Coder    // of the sending side
	enc    *wire.Encoder
	dec    *wire.Decoder
	last   uint64 // exchange
	buf    []byte // what was read of a message
}

func (p *filePacker) store(cfg *Config) ctxstore.Store {
	if cfg.Store != nil {
		return cfg.Store
	}
	s := memory.New(memory.Config{})
	p.stores = append(p.stores, s)
	return s
}

func open(w io.Writer, cfg Config) (*filePacker, error) {
	p := &filePacker{out: w, buf: make([]byte, atOnce)}
	book := binary.NewBook(ctxstore.Shapes{Store: p.store(&cfg)})
	p.coder = book.Coder(binary.Options{
		Refer: cfg.Store != nil, Without: cfg.Without, Description: cfg.Description, Shared: cfg.Description != nil,
		Describe: coders.Describe(book, cfg.Schema),
	})
	reader := binary.NewBook(ctxstore.Shapes{Store: p.store(&cfg)}).Coder(binary.Options{Description: cfg.Description})
	hello := frame.Hello{Token: make([]byte, frame.TokenLen), Representation: frame.Binary, Stages: p.coder.Stages(),
		Limits: frame.Limits{
			MaxFragment: frame.MaxPayload, MaxMessage: 1 << 40, MaxShapes: 1024, MaxShapeBytes: 4 << 20,
			Window: frame.MinWindow, Far: true}}
	for _, random := range [][]byte{hello.Session[:], hello.Word[:]} {
		if _, err := rand.Read(random); err != nil {
			return nil, err
		}
	}
	octets := hello.AppendTo(nil)
	p.dec = wire.NewDecoder(wire.DecoderConfig{Shapes: reader})
	if _, err := p.dec.Next(octets); err != nil {
		return nil, err
	}
	if _, err := w.Write(octets); err != nil {
		return nil, err
	}
	p.enc = wire.NewEncoder(wire.EncoderConfig{Origin: frame.OriginOf(hello), Word: hello.Word, Peer: p.coder,
		Refer:  cfg.Store != nil,
		Limits: hello.Limits, SyncBytes: cfg.SyncBytes, SyncInterval: -1}, len(octets), time.Time{})
	return p, nil
}

// message reads, splits, writes and checks a message.
func (p *filePacker) message(m Packable, measure bool) (f Figures, err error) {
	f.Name = m.Name
	before := p.coder.Counts()
	p.last++
	out := wire.Outgoing{Key: frame.Key{Exchange: p.last}, OneWay: true}
	got, away := join{}, time.Duration(0)
	cut := p.coder.Split(0, p.enc.MaxSegment(), func(_ bool, part wire.Part) error {
		left := time.Now()
		defer func() { away += time.Since(left) }()
		if err := p.encode(&out, &part); err != nil {
			return err
		}
		return p.write(&f, &got)
	})
	defer cut.Free()
	others := &alone{Writer: io.Discard}
	if measure {
		if others, err = newAlone(); err != nil {
			return f, err
		}
	}
	if err := p.feed(cut, m.Body, &f, &got, others); err != nil {
		return f, err
	}
	if !got.whole || len(got.want) > 0 {
		return f, ErrDifferent
	}
	f.Split, f.Join = f.Split-int64(away), int64(got.took)
	after := p.coder.Counts()
	f.Learned, f.Widened, f.Exceptions = after.Learned-before.Learned, after.Widened-before.Widened,
		after.Exceptions-before.Exceptions
	f.Drifted = after.Drifted - before.Drifted
	if measure {
		f.Gzip, f.Zstd, err = others.close()
	}
	return f, err
}

// feed splits a message as it is read.
func (p *filePacker) feed(cut wire.SplitStep, body io.Reader, f *Figures, got *join, others io.Writer) error {
	for ended := false; !ended; {
		n, err := io.ReadFull(body, p.buf)
		ended = errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
		if err != nil && !ended {
			return err
		}
		octets, whole := p.buf[:n], ended && f.Raw == 0
		f.Raw += int64(n)
		got.want = append(got.want, octets...)
		began := time.Now()
		if whole {
			err = cut.All(octets)
		} else if err = cut.Write(octets); err == nil && ended {
			err = cut.Close()
		}
		f.Split += int64(time.Since(began))
		if err != nil {
			return err
		}
		if _, err := others.Write(octets); err != nil {
			return err
		}
	}
	return nil
}

// encode makes frames of a part; a file needs no time of day.
func (p *filePacker) encode(out *wire.Outgoing, part *wire.Part) error {
	if shape := p.enc.Announce(out.Lane, part, false, time.Time{}); shape != nil {
		for !p.enc.Piece(shape, time.Time{}) {
			continue
		}
	}
	return p.enc.Data(out, new(wire.Part), part, part.Last, time.Time{})
}

// write writes the encoded frames, and decodes them.
func (p *filePacker) write(f *Figures, got *join) error {
	for _, w := range p.enc.Written() {
		switch w.Kind {
		case frame.KindShape:
			f.Shape += int64(w.Octets)
		case frame.KindData:
			f.Frames += int64(w.Octets)
			f.Content += int64(w.Payload)
		default:
		}
	}
	octets := p.enc.Bytes()
	if _, err := p.out.Write(octets); err != nil {
		return err
	}
	for len(octets) > 0 {
		fr, err := p.dec.Next(octets)
		if err != nil {
			return errors.Join(ErrDifferent, err)
		}
		for i := range fr.Events {
			if err := got.event(&fr.Events[i]); err != nil {
				return errors.Join(ErrDifferent, err)
			}
		}
		octets = octets[fr.Octets:]
	}
	p.enc.Reset()
	return nil
}

// join compares the joined message with the expected one.
type join struct {
	want   []byte // not joined yet
	joiner program.Joiner
	joined []byte
	whole  bool
	took   time.Duration
}

func (j *join) event(ev *wire.Event) (err error) {
	switch ev.Kind {
	case wire.Fragment:
		if ev.Err != nil {
			return ev.Err
		}
	case wire.Synced, wire.Closed:
		if !ev.Verdict.Right {
			return errors.New("a check does not agree")
		}
		return nil
	default:
		return nil
	}
	began := time.Now()
	part := &ev.Body
	if part.Program == nil {
		j.joined = append(j.joined[:0], part.Content...)
	} else {
		if part.First {
			j.joiner.Reset(part.Program)
		}
		if j.joined, err = j.joiner.Join(j.joined[:0], part.Content, part.Text, part.Last); err != nil {
			return err
		}
	}
	j.took += time.Since(began)
	if !bytes.HasPrefix(j.want, j.joined) {
		return errors.New("other bytes")
	}
	j.want, j.whole = j.want[len(j.joined):], ev.Last
	return nil
}

// alone compresses what is written to it by itself, as one message.
type alone struct {
	io.Writer
	gz, zs counter
	g      *gzip.Writer
	z      *zstd.Encoder
}

func newAlone() (a *alone, err error) {
	a = &alone{}
	a.g = gzip.NewWriter(&a.gz)
	a.z, err = zstd.NewWriter(&a.zs, zstd.WithEncoderConcurrency(1))
	a.Writer = io.MultiWriter(a.g, a.z)
	return a, err
}

// close returns how long it became.
func (a *alone) close() (gz, zs int64, err error) {
	err = errors.Join(a.g.Close(), a.z.Close())
	return int64(a.gz), int64(a.zs), err
}

// counter counts bytes.
type counter int64

// Write implements [io.Writer].
func (c *counter) Write(b []byte) (int, error) {
	*c += counter(len(b))
	return len(b), nil
}

func (p *filePacker) close() error {
	p.enc.Close(frame.CloseDone, "")
	err := p.write(new(Figures), new(join))
	for _, s := range p.stores {
		err = errors.Join(err, s.Close())
	}
	return err
}

package inspector

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sort"
	"sync"

	"github.com/klauspost/compress/zstd"

	"github.com/hhfr/hhfr/internal/bin"
	"github.com/hhfr/hhfr/internal/capture"
	"github.com/hhfr/hhfr/internal/shape"
)

const (
	// enough is the length from which on a block is compressed, in bytes.
	enough = 256 << 10
	// cached is how many blocks are in memory at once.
	cached = 8
	// part is how much of a long body is compressed at once, in bytes.
	part = 1 << 20
)

// MaxFile bounds the file of a [Log], in bytes.
const MaxFile = 8 << 30

// ErrFull reports that the file of a log has its greatest length.
var ErrFull = fmt.Errorf("the file for messages is longer than %d GB", MaxFile>>30)

// Log is the messages that were read, in the order in which they became whole. It is safe for
// concurrent use.
type Log struct {
	mu     sync.Mutex
	file   *os.File // nil: nothing was compressed so far
	size   int64    // of the file
	full   []logBlock
	last   []byte          // the messages behind the last full block
	ends   []int           // of each of these, in last
	states []capture.State // of all
	long   map[int][]fileExtent
	shapes map[string]*shape.Shape // by their URIs

	unchecked map[*capture.Decoded]int
	cache     []*openBlock // the one that was used last is the last one

	encoder *zstd.Encoder
	decoder *zstd.Decoder
}

// fileExtent is a part of the file.
type fileExtent struct {
	at     int64
	length int
}

// logBlock is consecutive messages, compressed.
type logBlock struct {
	fileExtent
	first, count int
}

// openBlock is a block that was decompressed.
type openBlock struct {
	first   int
	entries [][]byte
}

// NewLog returns an empty log.
func NewLog() *Log {
	return &Log{long: map[int][]fileExtent{}, shapes: map[string]*shape.Shape{}, unchecked: map[*capture.Decoded]int{}}
}

// Len returns the number of messages.
func (l *Log) Len() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.states)
}

// Append stores a message; e has what others say of it. Its error is that of the file, or
// [ErrFull].
func (l *Log) Append(m *capture.Decoded, e LogEntry) error {
	e.Decoded = *m
	l.mu.Lock()
	defer l.mu.Unlock()
	if on := m.Carriage; on != nil {
		e.Shapes = [2]string{l.storeShape(on.Head.Shape), l.storeShape(on.Body.Shape)}
	}
	b, err := e.stored()
	n := len(l.states)
	if err == nil && int64(len(m.Body)) < m.BodyOctets {
		err = l.store(n, m.Reader())
	}
	if err != nil {
		return err
	}
	l.last = append(l.last, b...)
	l.ends = append(l.ends, len(l.last))
	l.states = append(l.states, m.State)
	if m.State == capture.Unverified {
		l.unchecked[m] = n
	}
	if len(l.last) < enough {
		return nil
	}
	return l.fill()
}

// mostShapes bounds the shapes that are stored.
const mostShapes = 1 << 12

// storeShape stores a shape, and gives its URI; empty: there is none.
func (l *Log) storeShape(s *shape.Shape) string {
	if s == nil {
		return ""
	}
	uri := s.Fingerprint().URI()
	if len(l.shapes) < mostShapes {
		l.shapes[uri] = s
	}
	return uri
}

// Check sets the states of messages to those that a check found.
func (l *Log) Check(c *capture.Check) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, m := range c.Messages {
		if n, ok := l.unchecked[m]; ok {
			l.states[n] = m.State
			delete(l.unchecked, m)
		}
	}
}

// fill makes a full block of the last messages.
func (l *Log) fill() error {
	at, err := l.write(l.packed())
	if err != nil {
		return err
	}
	count := len(l.ends)
	l.full = append(l.full, logBlock{at, len(l.states) - count, count})
	l.last, l.ends = l.last[:0], l.ends[:0]
	if cap(l.last) > 4*enough {
		l.last = nil
	}
	return nil
}

// packed are the last messages, behind their number and lengths.
func (l *Log) packed() []byte {
	b := bin.AppendUvarint(nil, uint64(len(l.ends)))
	from := 0
	for _, end := range l.ends {
		b = bin.AppendUvarint(b, uint64(end-from))
		from = end
	}
	return append(b, l.last...)
}

// write compresses bytes, and writes them at the end of the file.
func (l *Log) write(b []byte) (e fileExtent, err error) {
	if l.file == nil {
		if l.file, err = os.CreateTemp("", "hhfr-"); err != nil {
			return e, fmt.Errorf("a file for messages: %w", err)
		}
		_ = os.Remove(l.file.Name()) // not possible on every system while it is open
	}
	if l.encoder == nil {
		l.encoder, err = zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1),
			zstd.WithLowerEncoderMem(true))
		if err != nil {
			return e, err
		}
	}
	packed := l.encoder.EncodeAll(b, nil)
	if l.size+int64(len(packed)) > MaxFile {
		return e, ErrFull
	}
	if _, err := l.file.WriteAt(packed, l.size); err != nil {
		return e, fmt.Errorf("the file for messages: %w", err)
	}
	e = fileExtent{l.size, len(packed)}
	l.size += int64(len(packed))
	return e, nil
}

// read decompresses a part of the file.
func (l *Log) read(e fileExtent) (_ []byte, err error) {
	if l.decoder == nil {
		l.decoder, err = zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true))
		if err != nil {
			return nil, err
		}
	}
	b := make([]byte, e.length)
	if _, err := l.file.ReadAt(b, e.at); err != nil {
		return nil, fmt.Errorf("the file for messages: %w", err)
	}
	return l.decoder.DecodeAll(b, nil)
}

// store writes a long body.
func (l *Log) store(n int, body io.Reader) error {
	var all []fileExtent
	b := make([]byte, part)
	for {
		k, err := io.ReadFull(body, b)
		if k > 0 {
			e, err := l.write(b[:k])
			if err != nil {
				return err
			}
			all = append(all, e)
		}
		switch {
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			l.long[n] = all
			return nil
		case err != nil:
			return err
		}
	}
}

// At returns message n, from 0.
func (l *Log) At(n int) (*LogEntry, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := &LogEntry{}
	if n < 0 || n >= len(l.states) {
		return e, fmt.Errorf("there is no message %d of %d", n, len(l.states))
	}
	b, err := l.stored(n)
	if err != nil {
		return e, err
	}
	err = e.read(b)
	if e.State = l.states[n]; e.Carriage != nil {
		e.Carriage.Head.Shape, e.Carriage.Body.Shape = l.shapes[e.Shapes[0]], l.shapes[e.Shapes[1]]
	}
	return e, err
}

// stored returns a message as it is stored.
func (l *Log) stored(n int) ([]byte, error) {
	if k := n - (len(l.states) - len(l.ends)); k >= 0 {
		from := 0
		if k > 0 {
			from = l.ends[k-1]
		}
		return bytes.Clone(l.last[from:l.ends[k]]), nil // the memory is used again
	}
	for i, o := range l.cache {
		if n >= o.first && n < o.first+len(o.entries) {
			l.cache = append(slices.Delete(l.cache, i, i+1), o)
			return o.entries[n-o.first], nil
		}
	}
	b := l.full[sort.Search(len(l.full), func(i int) bool { return l.full[i].first > n })-1]
	all, err := l.read(b.fileExtent)
	if err != nil {
		return nil, err
	}
	in := bin.NewCursor(all, 0)
	lengths := make([]int, in.Count(uint64(len(all))))
	for i := range lengths {
		lengths[i] = int(in.Uvarint())
	}
	o := &openBlock{first: b.first}
	for _, length := range lengths {
		o.entries = append(o.entries, in.Take(length))
	}
	if err := in.Err(); err != nil {
		return nil, err
	}
	if len(l.cache) >= cached {
		l.cache = slices.Delete(l.cache, 0, 1)
	}
	l.cache = append(l.cache, o)
	return o.entries[n-o.first], nil
}

// Whole returns message n with all of its body.
func (l *Log) Whole(n int) (*LogEntry, error) {
	e, err := l.At(n)
	if err != nil || int64(len(e.Body)) == e.BodyOctets {
		return e, err
	}
	var body bytes.Buffer
	err = l.WriteBody(n, &body)
	e.Body = body.Bytes()
	return e, err
}

// WriteBody writes the whole body of message n.
func (l *Log) WriteBody(n int, w io.Writer) error {
	l.mu.Lock()
	all, long := l.long[n]
	l.mu.Unlock()
	if !long {
		e, err := l.At(n)
		if err == nil {
			_, err = w.Write(e.Body)
		}
		return err
	}
	for _, e := range all {
		l.mu.Lock()
		b, err := l.read(e)
		l.mu.Unlock()
		if err == nil {
			_, err = w.Write(b)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Close removes the file. The log is not to be used any more.
func (l *Log) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.decoder != nil {
		l.decoder.Close()
	}
	if l.file == nil {
		return nil
	}
	err := errors.Join(l.file.Close(), os.Remove(l.file.Name()))
	if l.file = nil; errors.Is(err, os.ErrNotExist) { // it was removed at once
		return nil
	}
	return err
}

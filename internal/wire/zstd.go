package wire

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"sync"

	"github.com/klauspost/compress/zstd"

	"github.com/hhfr/hhfr/internal/shape/recall"
	"github.com/hhfr/hhfr/internal/shape/transit"
)

// How a segment begins on a stream with the stage [Zstd] (wire-format section 11.7). No packed
// segment begins so, nor any text in UTF-8.
const (
	markFrame    = 0xfc // a frame follows
	markPlain    = 0xf8 // the segment follows, which begins with a mark itself; never before a packed one
	markRecalled = 0xf6 // what follows is by the window
	markForget   = 0xfa // the same, by a window that begins anew
)

func marked(segment []byte) bool {
	if len(segment) == 0 {
		return false
	}
	switch segment[0] {
	case markFrame, markPlain, markRecalled, markForget:
		return true
	}
	return false
}

const (
	// leastText and leastPacked are from how many octets on segments are compressed. Packed ones
	// that are shorter hardly ever get smaller.
	leastText     = 64
	leastRecalled = 32
	leastPacked   = 512
	// maxExpanded bounds what a frame says it expands to, in octets: a payload.
	maxExpanded = 16384
	// mostMisses bounds how many segments in a row are left alone, after others did not get
	// smaller: 2 to that power, less one.
	mostMisses = 4

	magicLen = 4
)

// magic is what a frame begins with, and none on the wire does.
var magic = []byte{0x28, 0xb5, 0x2f, 0xfd}

// compressor and expander have buffers of their own, for as long as one segment takes; nothing of
// it is of use for the next.
type compressor struct {
	*zstd.Encoder
	out []byte
}

type expander struct {
	*zstd.Decoder
	in, out []byte
}

// Compression has the buffers of the stage [Zstd], for as many segments as there are at once.
// Machines share one. The zero value is ready, and it may be used concurrently.
type Compression struct{ compressors, expanders, recallers, reminders sync.Pool }

func newCompressor() *compressor {
	e, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1),
		zstd.WithLowerEncoderMem(true), zstd.WithWindowSize(2*maxExpanded),
		zstd.WithSingleSegment(true), zstd.WithEncoderCRC(false), zstd.WithAllLitEntropyCompression(true),
		zstd.WithEncoderDictRaw(0, transit.Vocabulary()))
	if err != nil {
		panic(err) // the options are constants
	}
	return &compressor{Encoder: e}
}

func newExpander() *expander {
	d, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(maxExpanded),
		zstd.WithDecodeAllCapLimit(true), zstd.WithDecoderDictRaw(0, transit.Vocabulary()))
	if err != nil {
		panic(err)
	}
	return &expander{Decoder: d, out: make([]byte, 0, maxExpanded)}
}

// trials reports whether compressing is worth a try: each segment in a row that did not get smaller
// has twice as many left alone. It belongs to a lane, so that no lane's octets tell of another's.
// Without them (nil) it always is.
type trials struct{ misses, leave uint8 }

func (t *trials) worth() bool {
	if t != nil && t.leave > 0 {
		t.leave--
		return false
	}
	return true
}

func (t *trials) note(smaller bool) {
	switch {
	case t == nil:
		return
	case smaller:
		*t = trials{}
		return
	}
	t.misses = min(t.misses+1, mostMisses)
	t.leave = 1<<t.misses - 1
}

// compress makes the segment dst[from:] what travels with the stage, if that is smaller: by the
// window, if there is one, and then if it is not so much longer, else a frame.
func (z *Compression) compress(dst []byte, from int, packed bool, w *recall.History, longer int, t *trials) []byte {
	segment, least := dst[from:], leastText
	switch {
	case w != nil:
		least = leastRecalled
	case packed:
		least = leastPacked
	}
	if len(segment) >= least && t.worth() {
		var smaller bool
		if w != nil {
			dst, smaller = z.recalled(dst, from, w, longer)
		} else {
			dst, smaller = z.framed(dst, from)
		}
		if t.note(smaller); smaller {
			return dst
		}
	}
	if !packed && marked(segment) {
		dst = append(dst, 0)
		copy(dst[from+1:], dst[from:])
		dst[from] = markPlain
	}
	return dst
}

// isNoise reports whether no frame makes a segment smaller: whether among some of its bytes all
// values are as frequent as in noise, as in what was encrypted or compressed before. What repeats
// noise as it is may be taken for noise.
func isNoise(segment []byte) bool {
	const looks = 1024
	const most = looks + looks*(looks-1)/256 + looks/4 // noise has 256 less, give or take 90
	if len(segment) < 4*looks {
		return false
	}
	var counts [256]int
	for i := range looks {
		counts[segment[i*(len(segment)/looks)]]++
	}
	squares := 0
	for _, n := range counts {
		squares += n * n
	}
	return squares < most
}

// framed compresses a segment by itself.
func (z *Compression) framed(dst []byte, from int) ([]byte, bool) {
	if isNoise(dst[from:]) {
		return dst, false
	}
	c, _ := z.compressors.Get().(*compressor)
	if c == nil {
		c = newCompressor()
	}
	defer z.compressors.Put(c)
	c.out = c.EncodeAll(dst[from:], c.out[:0])
	frame := c.out[magicLen:]
	if 1+len(frame) >= len(dst)-from {
		return dst, false
	}
	return append(append(dst[:from], markFrame), frame...), true
}

// lenFramed is how many octets a segment takes as a frame.
func (z *Compression) lenFramed(segment []byte) int {
	c, _ := z.compressors.Get().(*compressor)
	if c == nil {
		c = newCompressor()
	}
	defer z.compressors.Put(c)
	c.out = c.EncodeAll(segment, c.out[:0])
	return 1 + len(c.out) - magicLen
}

// recalled compresses a segment by what the window has, which has the segment, too, from then on.
func (z *Compression) recalled(dst []byte, from int, w *recall.History, longer int) ([]byte, bool) {
	p, _ := z.recallers.Get().(*recall.Compressor)
	if p == nil {
		p = new(recall.Compressor)
	}
	defer z.recallers.Put(p)
	mark := byte(markRecalled)
	if w.Empty() {
		mark = markForget
	}
	packed, done := p.Pack(w, dst[from:], longer)
	if !done {
		return dst, false
	}
	return append(append(dst[:from], mark), packed...), true
}

// lenRecalled is how many octets a segment takes as it is, by a window that has it from then on.
func (z *Compression) lenRecalled(w *recall.History, content []byte) int {
	p, _ := z.recallers.Get().(*recall.Compressor)
	if p == nil {
		p = new(recall.Compressor)
	}
	defer z.recallers.Put(p)
	packed, _ := p.Pack(w, append([]byte{0}, content...), math.MaxInt32)
	return 1 + len(packed)
}

// sizeRecalled is how many bytes a segment would take by a window, which stays as it is.
func (z *Compression) sizeRecalled(w *recall.History, segment []byte) int {
	p, _ := z.recallers.Get().(*recall.Compressor)
	if p == nil {
		p = new(recall.Compressor)
	}
	defer z.recallers.Put(p)
	return 1 + min(p.Size(w, segment), len(segment))
}

var errFrame = errors.New("malformed compressed segment")

// expand calls use with what a segment was before the stage [Zstd] (wire-format section 11.7);
// packed tells segments that travel packed from others. window gives that of the segment, begun
// anew or not; it fails if that is lost. What use gets is good until it returns. The error is that
// of use or window, or tells of a malformed segment. Work and memory are bounded by what a payload
// can be.
func (z *Compression) expand(
	segment []byte, packed bool, window func(anew bool) (*recall.History, error), use func(segment []byte) error,
) error {
	if !marked(segment) || packed && segment[0] == markPlain {
		return use(segment)
	}
	switch segment[0] {
	case markFrame:
		return z.unframe(segment[1:], use)
	case markPlain:
		if !marked(segment[1:]) {
			return fmt.Errorf("%w: marked as plain for nothing", errFrame)
		}
		return use(segment[1:])
	}
	w, err := window(segment[0] == markForget)
	if err != nil {
		return err
	}
	u, _ := z.reminders.Get().(*recall.Decompressor)
	if u == nil {
		u = new(recall.Decompressor)
	}
	defer z.reminders.Put(u)
	out, err := u.Unpack(w, segment[1:])
	if err != nil {
		return err
	}
	return use(out)
}

// unframe expands a frame.
func (z *Compression) unframe(frame []byte, use func(segment []byte) error) error {
	x, _ := z.expanders.Get().(*expander)
	if x == nil {
		x = newExpander()
	}
	defer z.expanders.Put(x)
	size, err := checkFrame(frame)
	if err != nil {
		return err
	}
	x.in = append(append(x.in[:0], magic...), frame...)
	out, err := x.DecodeAll(x.in, x.out[:0])
	if err != nil {
		return fmt.Errorf("%w: %w", errFrame, err)
	}
	if len(out) != size {
		return fmt.Errorf("%w: not the %d octets it says", errFrame, size)
	}
	return use(out)
}

// checkFrame holds the outline of a frame against what the stage allows, before anything is
// expanded: it tells its size, and has no other dictionary, no check, and nothing behind it.
func checkFrame(b []byte) (size int, err error) {
	switch {
	case len(b) > 2 && b[0] == 0x20:
		size, b = int(b[1]), b[2:]
	case len(b) > 3 && b[0] == 0x60:
		size, b = int(binary.LittleEndian.Uint16(b[1:]))+256, b[3:]
	default:
		return 0, fmt.Errorf("%w: its header", errFrame)
	}
	if size > maxExpanded {
		return 0, fmt.Errorf("%w: it says %d octets", errFrame, size)
	}
	for last := false; !last; {
		if len(b) < 3 {
			return 0, fmt.Errorf("%w: it is cut off", errFrame)
		}
		header := int(b[0]) | int(b[1])<<8 | int(b[2])<<16
		last = header&1 == 1
		length := header >> 3
		if header>>1&3 == 1 { // one octet, repeated
			length = 1
		}
		if b = b[3:]; length > len(b) {
			return 0, fmt.Errorf("%w: it is cut off", errFrame)
		}
		b = b[length:]
	}
	if len(b) > 0 {
		return 0, fmt.Errorf("%w: octets are left over", errFrame)
	}
	return size, nil
}

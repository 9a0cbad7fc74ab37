package program

import (
	"fmt"

	"github.com/hhfr/hhfr/internal/bin"
	"github.com/hhfr/hhfr/internal/shape"
	"github.com/hhfr/hhfr/internal/shape/code"
	"github.com/hhfr/hhfr/internal/shape/items"
)

// columnChunk is how many rows of a column are unpacked at a time.
const columnChunk = 256

// Joiner puts one message after another together from its content (wire-format section 10). A
// segment that joins to more than 4 MiB is refused before more than that, and one text, is written.
// Nothing is allocated once its buffers have grown. Not safe for concurrent use.
type Joiner struct {
	p       *code.Code
	at      joinState
	chars   []byte // of base64, before they are broken into lines
	pending []byte // texts after the last item, until it is known that they hold
	given   int    // bytes of them that were given out
	begun   bool
	text    bool

	utf8 []byte // of a message in UTF-16: what this segment joins to, behind what is left of the one before

	seg   items.Reader
	last  bool // the segment is the message's last
	more  bool // it has more than was joined so far
	most  int  // how much is to be joined at a time, in bytes
	gone  int  // bytes of it that were given out before
	dst   []byte
	start int // of what is joined now, in dst
	mark  int // end of the last item in dst
	stop  int // beyond that in dst nothing is begun

	group columnGroup

	mantissas, scales [columnChunk]uint64
}

// joinState is where a joiner stands between two segments.
type joinState struct {
	pc     int32
	inText bool
	loops  []joinLoop
	slots  [][]byte
	last   []byte
	rows   uint64 // of the column that is open
	pieces pieceJoiner
}

type joinLoop struct {
	pc   int32
	left uint64 // rows of the group still to come
	rows uint64
	more bool
}

// pieceJoiner is what a joiner knows of a value in pieces.
type pieceJoiner struct {
	begun, text bool
	form        byte
	column      int
}

// columnGroup is a group of a column of which rows are still to come.
type columnGroup struct {
	n, from           int // its rows, and how many are written; the same: none is open
	atATime           int // rows
	more              bool
	w, v              uint
	low, high         uint8
	mantissas, scales bin.BitReader
	rare              items.Reader
	rares             uint64
	next              int // row of the next exception, -1: there is none
}

func (j *Joiner) fail(what string, args ...any) error {
	return &shape.Error{Code: shape.Malformed, At: int64(j.seg.At), What: fmt.Sprintf(what, args...)}
}

// over tells, by an error, that n more bytes would make the segment's text too long.
func (j *Joiner) over(n int) error {
	if j.gone+len(j.dst)-j.start+n <= maxSegmentJoined {
		return nil
	}
	what := fmt.Sprintf("a segment that joins to more than %d octets", maxSegmentJoined)
	return &shape.Error{Code: shape.TooLarge, At: int64(j.seg.At), What: what}
}

// appendText appends lits[a:b]; lits[a:] has code.LitRoom bytes. Most texts are short, and cheaper
// to copy in words together with what stands behind them.
func appendText(dst, lits []byte, a, b int) []byte {
	n := len(dst)
	if b-a <= code.LitRoom && cap(dst)-n >= code.LitRoom {
		dst = dst[:n+code.LitRoom]
		*(*[code.LitRoom]byte)(dst[n:]) = [code.LitRoom]byte(lits[a:])
		return dst[:n+b-a]
	}
	return append(dst, lits[a:b]...)
}

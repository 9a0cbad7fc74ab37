package sequence

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"io"
	"slices"

	"github.com/hhfr/hhfr/internal/bin"
	"github.com/hhfr/hhfr/pkg/streamer"
)

// Stored is one message as the application gave it: an optional HTTP head, its bytes as received,
// and a body. It is whole, as it lies in stores: a long body beside the message, in pieces.
type Stored struct {
	Head, Body []byte
	Long       *LongBody // in the place of Body; nil: the message is not long
	// Rest, in what a handler returns, is read to its end and follows Body; nil: nothing follows.
	Rest io.Reader
}

// Message is the message as one of a stream. A long body is read from the store, until ctx is done;
// that of a reply is dropped when it is read to its end or closed.
func (m Stored) Message(ctx context.Context) *streamer.Message {
	if m.Long != nil {
		return &streamer.Message{Head: m.Head, Body: m.Long.Open(ctx, 0), Length: m.Long.length}
	}
	return streamer.NewMessage(m.Head, m.Body)
}

const (
	flagAnswers = 1 << iota
	flagWanted  // a reply is; with flagAnswers: the fate is unknown
	flagHead
	flagLong   // behind the flags the name of the body follows, at the end its length and digest
	knownFlags = 1<<iota - 1
)

// encode makes what the engine carries: a message, and of its place what the number does not say.
func encode(m Stored, p streamer.Place) []byte {
	b := make([]byte, 1, 1+2*binary.MaxVarintLen64+len(m.Head)+len(m.Body))
	if m.Long != nil {
		b[0] |= flagLong
		b, _ = hex.AppendDecode(b, []byte(m.Long.name)) // which was made of bytes
	}
	if p.Answers != 0 {
		b[0] |= flagAnswers
		b = binary.AppendUvarint(b, p.Answers)
	}
	if p.Wanted || p.Unknown {
		b[0] |= flagWanted
	}
	if m.Head != nil {
		b[0] |= flagHead
		b = bin.AppendBytes(b, m.Head)
	}
	if m.Long != nil {
		return append(binary.AppendUvarint(b, uint64(m.Long.length)), m.Long.digest[:]...)
	}
	return append(b, m.Body...)
}

const nameLen = 16

// isLong reports whether what the engine carries is a long message, that is where its body lies.
func isLong(b []byte) bool { return len(b) > nameLen && b[0]&flagLong != 0 }

// weigh is what a message takes of what may be accepted and not done.
func weigh(b []byte) int {
	if isLong(b) {
		return longWeight
	}
	return len(b)
}

// unnamed is a message without the name of its body, which tells no two messages apart.
func unnamed(b []byte) []byte {
	if !isLong(b) {
		return b
	}
	b = slices.Clone(b)
	clear(b[1 : 1+nameLen])
	return b
}

var errFlags = errors.New("flags that do not exist")

// decode is the reverse; what it returns aliases b.
func decode(b []byte) (m Stored, p streamer.Place, err error) {
	r := bin.NewCursor(b, 0)
	flags := r.U8()
	if r.Err() == nil && flags > knownFlags {
		r.Fail(errFlags)
	}
	if flags&flagLong != 0 {
		m.Long = &LongBody{name: hex.EncodeToString(r.Take(nameLen))}
	}
	second := flags&flagWanted != 0
	if flags&flagAnswers != 0 {
		p.Answers, p.Unknown = r.Uvarint(), second
	} else {
		p.Wanted = second
	}
	if flags&flagHead != 0 {
		m.Head = r.Bytes(uint64(len(b)))
	}
	if m.Long != nil {
		m.Long.length = int64(r.Count(MaxLong))
		copy(m.Long.digest[:], r.Take(len(m.Long.digest)))
		return m, p, r.Err()
	}
	m.Body = r.Rest()
	return m, p, r.Err()
}

package sequence

import (
	"encoding/binary"
	"errors"

	"github.com/hhfr/hhfr/internal/bin"
	"github.com/hhfr/hhfr/pkg/streamer"
)

// Message is one message as the application gave it: an optional HTTP head, its bytes as received,
// and a body. It is whole, as it lies in stores.
type Message struct{ Head, Body []byte }

const (
	flagAnswers = 1 << iota
	flagWanted  // a reply is; with flagAnswers: the fate is unknown
	flagHead
	knownFlags = 1<<iota - 1
)

// encode makes what the engine carries: a message, and of its place what the number does not say.
func encode(m Message, p streamer.Place) []byte {
	b := make([]byte, 1, 1+2*binary.MaxVarintLen64+len(m.Head)+len(m.Body))
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
	return append(b, m.Body...)
}

var errFlags = errors.New("flags that do not exist")

// decode is the reverse; what it returns aliases b.
func decode(b []byte) (m Message, p streamer.Place, err error) {
	r := bin.NewCursor(b, 0)
	flags := r.U8()
	if r.Err() == nil && flags > knownFlags {
		r.Fail(errFlags)
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
	m.Body = r.Rest()
	return m, p, r.Err()
}

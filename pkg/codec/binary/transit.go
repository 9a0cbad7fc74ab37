package binary

import (
	"bytes"
	"compress/flate"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/hhfr/hhfr/pkg/shape"
)

// vocabulary is the dictionary of shapes in transit (wire-format section 4): what standards have messages say again and again.
//
//go:embed vocabulary.txt
var vocabulary []byte

// maxInflated bounds a shape's serialization, in octets; none is longer.
const maxInflated = 1 << 20

// Forms of a shape in transit.
const (
	transitAlone = iota // deflated with the vocabulary
	transitBased        // the fingerprint of another shape comes first, whose serialization stands behind the vocabulary
)

// maxBase bounds the serialization of a shape that another is told by, in octets: deflate looks back no further.
const maxBase = 20 << 10

var deflaters = sync.Pool{New: func() any { return newDeflater(nil) }}

func newDeflater(base []byte) *flate.Writer {
	w, err := flate.NewWriterDict(nil, flate.BestCompression, append(vocabulary[:len(vocabulary):len(vocabulary)], base...))
	if err != nil {
		panic(err) // the level is a constant
	}
	return w
}

func deflate(w *flate.Writer, head, b []byte) []byte {
	var out bytes.Buffer
	_, _ = out.Write(head) // a buffer takes all
	w.Reset(&out)
	_, _ = w.Write(b)
	_ = w.Close()
	return out.Bytes()
}

// transit gives the octets of a shape as they travel. base is one that the other end has, and that is much like it; nil: there is none.
func (c *Coder) transit(s, base *shape.Shape) []byte {
	if c.stages&StageShapes == 0 {
		return s.Octets()
	}
	w := deflaters.Get().(*flate.Writer)
	out := deflate(w, []byte{transitAlone}, s.Octets())
	deflaters.Put(w)
	if base != nil && len(base.Octets()) <= maxBase {
		fp := base.Fingerprint()
		if based := deflate(newDeflater(base.Octets()), append([]byte{transitBased}, fp[:]...), s.Octets()); len(based) < len(out) {
			return based
		}
	}
	return out
}

// Serialization gives a shape's serialization from the octets that travel with these stages. base gives that of another shape.
func Serialization(octets []byte, stages uint64, base func(Fingerprint) ([]byte, error)) ([]byte, error) {
	if stages&StageShapes == 0 {
		return octets, nil
	}
	out, err := inflate(octets, base)
	if err != nil {
		return nil, &Error{Code: BadShape, Err: err}
	}
	return out, nil
}

func inflate(octets []byte, base func(Fingerprint) ([]byte, error)) ([]byte, error) {
	dictionary := vocabulary
	switch {
	case len(octets) > 0 && octets[0] == transitAlone:
		octets = octets[1:]
	case len(octets) > len(Fingerprint{}) && octets[0] == transitBased:
		before, err := base(Fingerprint(octets[1:]))
		if err != nil {
			return nil, fmt.Errorf("the shape it is told by: %w", err)
		}
		if len(before) > maxBase {
			return nil, errors.New("it is told by a shape that is too long for that")
		}
		dictionary = append(vocabulary[:len(vocabulary):len(vocabulary)], before...)
		octets = octets[1+len(Fingerprint{}):]
	default:
		return nil, errors.New("form of a shape in transit")
	}
	from := bytes.NewReader(octets)
	out, err := io.ReadAll(io.LimitReader(flate.NewReaderDict(from, dictionary), maxInflated+1))
	switch {
	case err != nil:
		return nil, err
	case len(out) > maxInflated:
		return nil, errors.New("longer than a shape may be")
	case from.Len() > 0:
		return nil, errors.New("octets left over")
	}
	return out, nil
}

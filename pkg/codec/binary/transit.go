package binary

import (
	"bytes"
	"compress/flate"
	_ "embed"
	"errors"
	"io"
	"sync"
)

// vocabulary is the dictionary of shapes in transit (wire-format section 4): what standards have messages say again and again.
//
//go:embed vocabulary.txt
var vocabulary []byte

// maxInflated bounds a shape's serialization, in octets; none is longer.
const maxInflated = 1 << 20

var deflaters = sync.Pool{New: func() any {
	w, err := flate.NewWriterDict(nil, flate.BestCompression, vocabulary)
	if err != nil {
		panic(err) // the level is a constant
	}
	return w
}}

// transit gives the octets of a shape as they travel.
func (c *Coder) transit(serialization []byte) []byte {
	if c.stages&StageShapes == 0 {
		return serialization
	}
	var b bytes.Buffer
	w := deflaters.Get().(*flate.Writer)
	defer deflaters.Put(w)
	w.Reset(&b)
	_, _ = w.Write(serialization) // a buffer takes all
	_ = w.Close()
	return b.Bytes()
}

// Serialization gives a shape's serialization from the octets that travel with these stages.
func Serialization(octets []byte, stages uint64) ([]byte, error) {
	if stages&StageShapes == 0 {
		return octets, nil
	}
	from := bytes.NewReader(octets)
	out, err := io.ReadAll(io.LimitReader(flate.NewReaderDict(from, vocabulary), maxInflated+1))
	switch {
	case err != nil:
	case len(out) > maxInflated:
		err = errors.New("longer than a shape may be")
	case from.Len() > 0:
		err = errors.New("octets left over")
	}
	if err != nil {
		return nil, &Error{Code: BadShape, Err: err}
	}
	return out, nil
}

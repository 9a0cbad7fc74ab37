//go:build !js

package recall

import (
	"sync"

	"github.com/klauspost/compress/zstd"
)

// restings are what makes far windows small while they rest: text takes a quarter.
var restings = sync.Pool{New: func() any {
	e, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1),
		zstd.WithLowerEncoderMem(true), zstd.WithWindowSize(FarReach), zstd.WithEncoderCRC(false),
		zstd.WithEncoderDictRaw(0, vocabulary))
	if err != nil {
		panic(err) // the options are constants
	}
	d, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(FarReach),
		zstd.WithDecoderDictRaw(0, vocabulary))
	if err != nil {
		panic(err)
	}
	return &resting{e, d}
}}

type resting struct {
	*zstd.Encoder
	*zstd.Decoder
}

// packSaid makes what was said small.
func (w *History) packSaid() {
	r := restings.Get().(*resting)
	defer restings.Put(r)
	small := r.EncodeAll(w.said, make([]byte, 0, len(w.said)/2))
	w.said, w.packed = append(make([]byte, 0, len(small)), small...), true
}

// unpackSaid is the reverse.
func (w *History) unpackSaid() {
	if !w.packed {
		return
	}
	r := restings.Get().(*resting)
	defer restings.Put(r)
	said, err := r.DecodeAll(w.said, make([]byte, 0, FarReach))
	if err != nil {
		panic(err) // it is what packSaid wrote
	}
	w.said, w.packed = said, false
}

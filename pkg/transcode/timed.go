package transcode

import (
	"io"
	"sync/atomic"
	"time"

	"github.com/hhfr/hhfr/pkg/codec/binary"
)

// timed is a coder that takes the time of its own work: of split without what becomes of the segments, of join without the wait for them.
type timed struct {
	*binary.Coder
	split, join atomic.Int64 // nanoseconds since they were taken last
}

// Split is that of the coder.
func (t *timed) Split(lane uint64, head []byte, body io.Reader, most int, emit func(inHead bool, number uint64, text bool, data []byte) error) error {
	began, away := time.Now(), time.Duration(0)
	err := t.Coder.Split(lane, head, body, most, func(inHead bool, number uint64, text bool, data []byte) error {
		left := time.Now()
		defer func() { away += time.Since(left) }()
		return emit(inHead, number, text, data)
	})
	t.split.Add(int64(time.Since(began) - away))
	return err
}

// NewJoin is that of the coder.
func (t *timed) NewJoin(number uint64) (func(dst, segment []byte, text, last bool) ([]byte, error), error) {
	join, err := t.Coder.NewJoin(number)
	if err != nil {
		return nil, err
	}
	return func(dst, segment []byte, text, last bool) ([]byte, error) {
		began := time.Now()
		defer func() { t.join.Add(int64(time.Since(began))) }()
		return join(dst, segment, text, last)
	}, nil
}

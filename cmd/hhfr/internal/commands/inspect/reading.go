package inspect

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/hhfr/hhfr/cmd/hhfr/internal/chosen"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/listing"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/printing"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/summary"
	"github.com/hhfr/hhfr/internal/capture"
	"github.com/hhfr/hhfr/internal/inspector"
)

// captureReading reads captures into a log.
type captureReading struct {
	names  []string
	inputs []capture.Input
	idle   bool // also messages of proxies that carry nothing
	log    *inspector.Log
	seen   listing.Seen

	mu     sync.Mutex    // of the choice
	choice chosen.Choice // which remembers what it took

	size int64        // of the inputs, in bytes; not above 0: not known
	done atomic.Int64 // bytes of these that were read
	more chan struct{}
	over chan struct{} // closed when all was read
	err  error         // what is missing; after over
}

// newReading reads inputs; wait: at the ends of files it waits for more.
func newReading(ctx context.Context, inputs []capture.Input, wait bool, choice chosen.Choice,
	log *inspector.Log) *captureReading {
	r := &captureReading{choice: choice, log: log, more: make(chan struct{}, 1), over: make(chan struct{})}
	for _, in := range inputs {
		if info, err := os.Stat(in.Name); err != nil || !info.Mode().IsRegular() || wait || r.size < 0 {
			r.size = -1
		} else {
			r.size += info.Size()
		}
		r.names = append(r.names, filepath.Base(in.Name))
		in.Octets = newGrowing(ctx, in, wait, func(n int) { r.done.Add(int64(n)) })
		r.inputs = append(r.inputs, in)
	}
	return r
}

// Name implements [screen.LogSource].
func (r *captureReading) Name() string { return strings.Join(r.names, ", ") }

// Choice implements [screen.LogSource].
func (r *captureReading) Choice() chosen.Choice {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.choice
}

// Share implements [screen.LogSource].
func (r *captureReading) Share() int {
	if r.size <= 0 {
		return -1
	}
	return int(min(100*r.done.Load()/r.size, 99))
}

// Grown implements [screen.LogSource].
func (r *captureReading) Grown(ctx context.Context) (ended bool, err error) {
	select {
	case <-ctx.Done():
		return true, nil
	case <-r.over:
		return true, r.err
	case <-r.more:
		return false, nil
	}
}

// run reads until all was read, or ctx ends.
func (r *captureReading) run(ctx context.Context, cfg capture.DecodeConfig) {
	defer close(r.over)
	defer func() {
		for _, in := range r.inputs {
			in.Octets.(*growingInput).close()
		}
	}()
	decoder := capture.NewReader(ctx, cfg)
	err := r.read(ctx, decoder)
	switch sum := decoder.Summary(); {
	case ctx.Err() != nil || errors.Is(err, errEnough):
	case err != nil:
		r.err = err
	case sum.Counts().Messages == 0:
		r.err = fmt.Errorf("%w; found instead: %s", capture.ErrNothing, summary.Instead(sum))
	case r.log.Len() == 0:
		r.err = fmt.Errorf("none of %s was chosen", printing.Count(sum.Counts().Messages, "message"))
	case sum.Partial():
		r.err = errors.New("something is missing: hhfr decode says what")
	}
}

var errEnough = errors.New("as many messages as are wanted")

func (r *captureReading) read(ctx context.Context, decoder *capture.Reader) error {
	for ev, err := range decoder.Captures(ctx, r.inputs...) {
		switch {
		case err != nil:
			return err
		case ctx.Err() != nil:
			return ctx.Err()
		case ev.Check != nil:
			r.log.Check(ev.Check)
		case ev.Message != nil:
			if err := r.take(ev.Message, decoder.Summary()); err != nil {
				return err
			}
		}
		select {
		case r.more <- struct{}{}:
		default:
		}
		if r.choice.Limit > 0 && r.log.Len() >= r.choice.Limit {
			return errEnough
		}
	}
	return nil
}

// take stores a message, if it is chosen.
func (r *captureReading) take(m *capture.Decoded, sum *capture.Summary) error {
	one := r.seen.Of(m)
	r.mu.Lock()
	takes := r.choice.Takes(one.Asked)
	r.mu.Unlock()
	if !takes || one.Idle() && !r.idle {
		return nil
	}
	e := inspector.LogEntry{Call: one.Call, Took: one.Took, Control: one.Control}
	if m.Stream > 0 && m.Stream <= len(sum.Streams) {
		e.Path = sum.Streams[m.Stream-1].Service.Path
	}
	return r.log.Append(m, e)
}

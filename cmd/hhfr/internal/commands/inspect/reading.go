package inspect

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hhfr/hhfr/cmd/hhfr/internal/chosen"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/summary"
	"github.com/hhfr/hhfr/internal/capture"
	"github.com/hhfr/hhfr/internal/inspector"
	"github.com/hhfr/hhfr/internal/proxy"
)

// reading reads captures into a log.
type captureReading struct {
	names  string
	inputs []capture.Input
	choice *chosen.Choice
	idle   bool // also messages of proxies that carry nothing
	log    *inspector.Log

	requests chosen.SeenRequests

	size, done atomic.Int64 // bytes of the inputs, and of these read; size 0: not known
	more       chan struct{}
	over       chan struct{} // closed when all was read

	mu   sync.Mutex
	note string // what is missing
}

// newReading reads inputs, which grow if wait is true: at their ends it waits for more.
func newReading(ctx context.Context, names []string, inputs []capture.Input, wait bool, choice *chosen.Choice,
	log *inspector.Log) *captureReading {
	r := &captureReading{choice: choice, log: log, more: make(chan struct{}, 1), over: make(chan struct{})}
	for i, name := range names {
		if r.names += filepath.Base(name); i < len(names)-1 {
			r.names += ", "
		}
	}
	size := int64(0)
	for _, in := range inputs {
		s, regular := in.Octets.(io.Seeker)
		if !regular || wait {
			size = -1
		} else if end, err := s.Seek(0, io.SeekEnd); err != nil || size < 0 {
			size = -1
		} else {
			size += end
		}
		if regular {
			_, _ = s.Seek(0, io.SeekStart)
		}
		// without Seek it is read once, and messages are there as soon as they are whole
		in.Octets = &countedInput{ctx, in.Octets, r, wait && regular}
		r.inputs = append(r.inputs, in)
	}
	r.size.Store(max(size, 0))
	return r
}

// counted is an input of which it is known how much was read.
type countedInput struct {
	ctx context.Context
	io.Reader
	r    *captureReading
	wait bool
}

// pause is how long a file is left alone that has nothing new.
const pause = 100 * time.Millisecond

// Read implements [io.Reader].
func (c *countedInput) Read(b []byte) (int, error) {
	for {
		n, err := c.Reader.Read(b)
		c.r.done.Add(int64(n))
		if n > 0 || !c.wait || !errors.Is(err, io.EOF) {
			return n, err
		}
		select {
		case <-c.ctx.Done():
			return 0, io.EOF
		case <-time.After(pause):
		}
	}
}

// Name implements [screen.LogSource].
func (r *captureReading) Name() string { return r.names }

// Share implements [screen.LogSource].
func (r *captureReading) Share() int {
	size := r.size.Load()
	if size == 0 {
		return -1
	}
	return int(min(100*r.done.Load()/size, 99))
}

// Grown implements [screen.LogSource].
func (r *captureReading) Grown(ctx context.Context) (ended bool, note string) {
	select {
	case <-ctx.Done():
		return true, ""
	case <-r.over:
		r.mu.Lock()
		defer r.mu.Unlock()
		return true, r.note
	case <-r.more:
		return false, ""
	}
}

// run reads until all was read, or ctx ends.
func (r *captureReading) run(ctx context.Context, cfg capture.DecodeConfig) {
	defer close(r.over)
	decoder := capture.NewReader(ctx, cfg)
	err := r.read(ctx, decoder)
	r.mu.Lock()
	defer r.mu.Unlock()
	switch sum := decoder.Summary(); {
	case ctx.Err() != nil || errors.Is(err, errEnough):
	case err != nil:
		r.note = err.Error()
	case r.log.Len() == 0:
		r.note = fmt.Sprintf("%v; found instead: %s", capture.ErrNothing, summary.Instead(sum))
	case sum.Partial():
		r.note = "something is missing: hhfr decode says what"
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
	took, call := r.requests.Of(m)
	control := ""
	if m.HHFR {
		control = proxy.Control(m.Head)
	}
	if control != "" && m.BodyOctets == 0 && !r.idle {
		return nil
	}
	asked := chosen.Asked{Decoded: m, Kind: chosen.KindOf(m), Call: call, Took: took}
	if !r.choice.Takes(asked) {
		return nil
	}
	e := inspector.Logged{
		Candidate: asked.Candidate(), Lane: m.Lane, Exchange: m.Exchange, Stream: m.Stream, Direction: m.Direction,
		Index: m.Index, Last: m.Last, Why: m.Why, FileName: m.FileName(), Whole: m.Whole(),
	}
	if control != "" {
		e.Operation = "(" + control + ")"
	}
	if m.Stream > 0 && m.Stream <= len(sum.Streams) {
		e.Path = sum.Streams[m.Stream-1].Service.Path
	}
	return r.log.Append(m, e)
}

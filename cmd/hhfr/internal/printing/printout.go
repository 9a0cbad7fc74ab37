package printing

import (
	"context"
	"io"
)

// printout writes until that fails, and then cancels what produces the lines.
type printout struct {
	w    io.Writer
	stop context.CancelCauseFunc
	Err  error // the first one
}

// NewPrintout wraps w for commands that print as they go: the context is canceled with the error
// when nothing more can be printed.
func NewPrintout(ctx context.Context, w io.Writer) (context.Context, *printout, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	p := &printout{w: w, stop: cancel}
	return ctx, p, func() { cancel(nil) }
}

// Write implements [io.Writer].
func (p *printout) Write(b []byte) (int, error) {
	if p.Err != nil {
		return 0, p.Err
	}
	n, err := p.w.Write(b)
	if err != nil {
		p.Err = err
		p.stop(err)
	}
	return n, err
}

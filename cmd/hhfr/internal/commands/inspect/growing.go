package inspect

import (
	"context"
	"errors"
	"io"
	"os"
	"time"

	"github.com/hhfr/hhfr/internal/capture"
)

// growingInput is an input of which it is known how much was read, and which may get longer.
type growingInput struct {
	ctx  context.Context
	from io.Reader
	read func(n int)

	name string      // of a file that may get longer; empty: it ends where it ends
	info os.FileInfo // of what is being read
	next *os.File    // what is being read, if it is not the first file of that name
}

// pause is how long a file is left alone that has nothing new.
const pause = 100 * time.Millisecond

// newGrowing wraps an input; wait: at the end of a file it waits for more. Without Seek it is read
// once, and messages are there as soon as they are whole.
func newGrowing(ctx context.Context, in capture.Input, wait bool, read func(n int)) *growingInput {
	g := &growingInput{ctx: ctx, from: in.Octets, read: read}
	if info, err := os.Stat(in.Name); wait && err == nil && info.Mode().IsRegular() {
		g.name, g.info = in.Name, info
	}
	return g
}

// Read implements [io.Reader].
func (g *growingInput) Read(b []byte) (int, error) {
	for {
		n, err := g.from.Read(b)
		g.read(n)
		if n > 0 || g.name == "" || !errors.Is(err, io.EOF) {
			return n, err
		}
		info, err := os.Stat(g.name)
		if err == nil && !os.SameFile(info, g.info) {
			if n, _ := g.from.Read(b); n > 0 { // it was still written
				g.read(n)
				return n, nil
			}
			if err := g.open(info); err == nil {
				continue
			}
		}
		select {
		case <-g.ctx.Done():
			return 0, io.EOF
		case <-time.After(pause):
		}
	}
}

// open goes on in another file of the same name: that of a recording in several files has another
// name once it is complete.
func (g *growingInput) open(info os.FileInfo) error {
	f, err := os.Open(g.name)
	if err != nil {
		return err
	}
	g.close()
	g.from, g.next, g.info = f, f, info
	return nil
}

func (g *growingInput) close() {
	if g.next != nil {
		_ = g.next.Close()
	}
}

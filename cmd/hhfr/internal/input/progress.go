package input

import (
	"fmt"
	"io"
	"iter"

	"github.com/hhfr/hhfr/cmd/hhfr/internal/command"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/terminal"
	"github.com/hhfr/hhfr/internal/capture"
)

// progress shows on a terminal which share of all that is to be read was read.
type progress struct {
	w           io.Writer
	whole, done int64
	shown       int // percent; less than 0: nothing
	over        bool
}

// Watch shows how much of so many passes over the inputs is read, if stderr is a terminal and all
// of them can be read again: the length of others is not known.
func (s *Sources) Watch(g *command.Global, passes int64) *progress {
	p := &progress{w: g.Err, shown: -1, over: !terminal.Is(g.Err) || g.Quiet || g.LogFormat == "json"}
	watched := make([]capture.Input, 0, len(s.List))
	for _, in := range s.List {
		r, again := in.Octets.(io.ReadSeeker)
		if p.over || !again {
			p.over = true
			return p
		}
		size, err := r.Seek(0, io.SeekEnd)
		if err == nil {
			_, err = r.Seek(0, io.SeekStart)
		}
		if err != nil {
			p.over = true // whoever reads it says why
			return p
		}
		p.whole += passes * size
		watched = append(watched, capture.Input{Name: in.Name, Octets: watchedInput{r, p}})
	}
	s.List = watched
	return p
}

func (p *progress) add(n int) {
	p.done += int64(n)
	if p.over || p.whole == 0 {
		return
	}
	if percent := min(int(100*p.done/p.whole), 99); percent > p.shown {
		fmt.Fprintf(p.w, "\r%3d%%", percent)
		p.shown = percent
	}
}

// Until passes events on, and ends with the last one; where they are printed on a terminal, maybe
// behind a pipe, with the first.
func (p *progress) Until(events iter.Seq2[capture.Event, error], printed bool) iter.Seq2[capture.Event, error] {
	return func(yield func(capture.Event, error) bool) {
		for ev, err := range events {
			if printed || err != nil {
				p.End()
			}
			if !yield(ev, err) {
				break
			}
		}
		p.End()
	}
}

// End removes what is shown.
func (p *progress) End() {
	if p.over = true; p.shown >= 0 {
		fmt.Fprint(p.w, "\r    \r")
	}
	p.shown = -1
}

// watchedInput is an input of which it is known how much was read.
type watchedInput struct {
	io.ReadSeeker
	p *progress
}

// Read implements [io.Reader].
func (w watchedInput) Read(b []byte) (int, error) {
	n, err := w.ReadSeeker.Read(b)
	w.p.add(n)
	return n, err
}

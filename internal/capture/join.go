package capture

import (
	"fmt"

	"github.com/hhfr/hhfr/internal/shape/program"
	"github.com/hhfr/hhfr/internal/spool"
	"github.com/hhfr/hhfr/internal/wire"
)

// joining is a head or body that is being received.
type joining struct {
	joiner *program.Joiner // nil: text
	body   *spool.Spooled  // nil: nothing came
}

// join takes a segment of a head or body.
func (r *Reader) join(j *joining, p *wire.Part) (err error) {
	if j.body == nil {
		j.body = r.bodies.Body()
	}
	if p.First && p.Program != nil {
		if n := len(r.joiners); n > 0 {
			j.joiner, r.joiners = r.joiners[n-1], r.joiners[:n-1]
		} else {
			j.joiner = new(program.Joiner)
		}
		j.joiner.Reset(p.Program)
	}
	octets := p.Content
	if j.joiner != nil {
		if octets, err = j.joiner.Join(r.scratch[:0], p.Content, p.Text, p.Last); err != nil {
			return err
		}
		if r.scratch = octets; cap(r.scratch) > maxScratch {
			r.scratch = nil
		}
	}
	if _, err = j.body.Write(octets); err == nil && j.body.Len() > r.cfg.MaxMessage {
		err = fmt.Errorf("longer than %d bytes", r.cfg.MaxMessage)
	}
	return err
}

// release frees what joined a part.
func (r *Reader) release(j *joining) {
	if j.joiner != nil && len(r.joiners) < maxJoiners {
		r.joiners = append(r.joiners, j.joiner)
	}
	j.joiner = nil
}

package arq_test

import (
	"time"

	"github.com/hhfr/hhfr/internal/arq"
	"github.com/hhfr/hhfr/internal/window"
)

// facing is two engines half a millisecond apart, with nothing between them but the bytes of
// datagrams, each with an application that commits at once: the cost of the engine alone.
type facing struct {
	// Drop loses every Drop-th datagram; 0: none.
	Drop int

	now       time.Time
	ends      [2]*arq.Endpoint
	datagrams [2][][]byte // in transit to that end
	spare     [][]byte
	parsed    window.Packet
	commits   []uint64
	done      uint64 // number acknowledged at end 0
	sent      int
}

// newFacing creates a pair of two engines of the same configuration. Errors: those of [arq.New].
func newFacing(cfg arq.Config) (*facing, error) {
	p := &facing{now: time.Unix(0, 0)}
	for i := range p.ends {
		var err error
		if p.ends[i], err = arq.New(cfg); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// Carry sends n messages from one end to the other and lets time pass until all are committed: each
// is accepted, put into a datagram, written, read, delivered, committed and acknowledged. Errors:
// those of [arq.Endpoint.Step], and of invalid datagrams.
func (p *facing) Carry(message []byte, n int) error {
	goal := p.done + uint64(n)
	for p.done < goal {
		for n > 0 && p.step(0, arq.Event{Kind: arq.Send, Message: message}) == nil { // otherwise it is full
			n--
		}
		if err := p.turn(); err != nil {
			return err
		}
	}
	return nil
}

// turn lets half a millisecond pass: what is in transit arrives, then both ends send.
func (p *facing) turn() error {
	p.now = p.now.Add(500 * time.Microsecond)
	for end := range p.ends {
		for _, b := range p.datagrams[end] {
			if err := p.arrive(end, b); err != nil {
				return err
			}
			p.spare = append(p.spare, b)
		}
		p.datagrams[end] = p.datagrams[end][:0]
	}
	for end := range p.ends {
		if err := p.step(end, arq.Event{Kind: arq.Wake}); err != nil {
			return err
		}
	}
	return nil
}

func (p *facing) arrive(end int, datagram []byte) error {
	if err := p.parsed.Parse(datagram); err != nil {
		return err
	}
	if err := p.step(end, arq.Event{Kind: arq.Arrived, Packet: &p.parsed}); err != nil {
		return err
	}
	for _, number := range p.commits {
		if err := p.step(end, arq.Event{Kind: arq.Committed, Number: number}); err != nil {
			return err
		}
	}
	p.commits = p.commits[:0]
	return nil
}

func (p *facing) step(end int, ev arq.Event) error {
	actions, err := p.ends[end].Step(p.now, ev)
	for i := range actions {
		switch a := &actions[i]; a.Kind {
		case arq.Transmit:
			p.transmit(end, a.Packet)
		case arq.Deliver:
			p.commits = append(p.commits, a.Number)
		case arq.Acknowledged:
			p.done = a.Number
		default:
		}
	}
	return err
}

func (p *facing) transmit(end int, packet *window.Packet) {
	var b []byte
	if n := len(p.spare); n > 0 {
		b, p.spare = p.spare[n-1], p.spare[:n-1]
	}
	b = packet.Append(b[:0])
	if p.sent++; p.Drop > 0 && p.sent%p.Drop == 0 {
		p.spare = append(p.spare, b)
		return
	}
	p.datagrams[1-end] = append(p.datagrams[1-end], b)
}

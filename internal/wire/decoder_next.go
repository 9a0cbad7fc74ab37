package wire

import (
	"errors"

	"github.com/hhfr/hhfr/internal/frame"
)

// Next decodes the frame that b begins with. Errors are [*frame.Error] and [*Error]; after one,
// [Decoder.Lose] has the decoder look for the next sync, from the byte behind. Behind a close
// everything is an error.
func (d *Decoder) Next(b []byte) (f DecodedFrame, err error) {
	if m := d.current; d.cfg.Reuse && m != nil && m.alone && !d.held.lane(m.Lane) {
		*m = IncomingMessage{}
		d.spare = m
	}
	d.events, d.current, d.scratch.Octets = d.events[:0], nil, d.scratch.Octets[:0]
	if d.closed && len(b) > 0 {
		return f, fault(OutOfPlace, d.at, errors.New("octets behind a close"))
	}
	if !d.following {
		if passed, searching := d.search(b); searching {
			f.Passed, f.At, f.Octets = true, d.at, passed
			d.at += int64(passed)
			return f, nil
		}
	}
	if len(b) > 0 && b[0] >= 0x80 {
		data, n, err := frame.ParseData(b, d.at, d.cfg.MaxFragment)
		if err != nil || n == 0 {
			return f, err
		}
		f.Kind, f.Octets, f.First, f.Last, f.Payload = frame.KindData, n, data.First, data.Last, len(data.Payload)
		err = d.took(&f, d.data(&data, n))
		return f, err
	}
	other, n, err := frame.Parse(b, d.at, d.cfg.MaxFragment)
	if err != nil || n == 0 {
		return f, err
	}
	f.Kind, f.Octets = other.Kind(), n
	err = d.took(&f, d.frame(other, n))
	return f, err
}

// took ends a frame, which made an error or none.
func (d *Decoder) took(f *DecodedFrame, err error) error {
	if err != nil {
		*f = DecodedFrame{}
		return fault(OutOfPlace, d.at, err)
	}
	f.At, f.Events, f.Message = d.at, d.events, d.current
	d.at += int64(f.Octets)
	return nil
}

func (d *Decoder) frame(f frame.Frame, n int) error {
	switch f := f.(type) {
	case frame.Hello:
		if d.known {
			return errors.New("a second hello")
		}
		return d.hello(f, n)
	case frame.Sync:
		return d.sync(f, n)
	case frame.Shape:
		return d.shape(f)
	case frame.Cancel:
		d.cancel(f)
	case frame.Window:
		d.emit(Event{Kind: Granted, Window: f})
	case frame.Flush:
		d.flush(f)
	case frame.Ack:
		d.acked = true
		d.emit(Event{Kind: Acked, Octets: f.Octets})
	case frame.Kept:
		if d.acked {
			return errors.New("a kept frame behind an ack frame")
		}
		d.emit(Event{Kind: KeptLong, Kept: f.Messages})
	case frame.Resync:
		d.emit(Event{Kind: Wanted})
	case frame.Idle:
		d.lanes.idle(f.Lanes, &d.held)
	case frame.Close:
		d.close(f)
	}
	return nil
}

func (d *Decoder) hello(f frame.Hello, n int) error {
	if err := supported(frame.OriginOf(f)); err != nil {
		return err
	}
	d.known, d.sure, d.following, d.word, d.origin = true, true, true, f.Word, frame.OriginOf(f)
	d.checks, d.syncEnd = frame.NewChecks(d.origin), d.at+int64(n)
	d.emit(Event{Kind: Met, Hello: &f})
	return nil
}

func (d *Decoder) flush(f frame.Flush) {
	m := d.open.Get(f.Message)
	switch {
	case m == nil || m.dropped:
	case d.held.settle(m, f.Settled):
	default:
		d.emit(Event{Kind: Settled, Message: m, Settled: f.Settled})
	}
}

func (d *Decoder) cancel(f frame.Cancel) {
	open := d.checks.Cancel(f)
	if f.Refused {
		d.emit(Event{Kind: Refused, Cancel: f})
		return
	}
	m := d.open.Get(f.Message)
	d.open.Delete(f.Message)
	if m != nil {
		m.dropped = true // what of it waits for a shape, too
		m.unuse()
	}
	if open {
		d.emit(Event{Kind: Cancelled, Cancel: f, Message: m})
	}
}

func (d *Decoder) close(f frame.Close) {
	right, known := d.checks.AgreeClose(f)
	d.closed = true
	_ = d.giveUp() // nobody can be asked any more
	d.emit(Event{Kind: Closed, Close: f, Verdict: d.verdict(right, known)})
}

// Lose has the decoder look for the next sync, since bytes are missing, or were malformed: missing
// many, -1 if nobody knows how many. It returns the messages of which the rest is lost.
func (d *Decoder) Lose(missing int64) []Event {
	d.events = d.events[:0]
	d.lose()
	if missing < 0 {
		d.floating = true
	} else {
		d.at += missing
	}
	return d.events
}

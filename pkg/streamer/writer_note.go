package streamer

import (
	"github.com/hhfr/hhfr/internal/frame"
	"github.com/hhfr/hhfr/internal/wire"
)

// note takes note of the frames encoded since the last time; first and last are of the data frames
// among them, and out, which may be nil, is what they are about. It gives what they cost of the
// credit of out.
func (w *streamWriter) note(out *outbound, first, last bool) (cost int64) {
	all := w.enc.Written()
	for i := int(w.noted); i < len(all); i++ {
		f := &all[i]
		data := f.Kind == frame.KindData
		if data {
			cost += int64(f.Content + pieceCost)
			out.payload += int64(f.Payload)
			if out.owner != nil {
				out.owner.carried(f.Octets)
			}
		}
		if w.s.cfg.Events != nil {
			w.s.cfg.Events(sentEvent(f, out, first, last && i == len(all)-1))
		}
		first = first && !data
	}
	w.noted = int32(len(all))
	if last {
		w.whole++
	}
	return cost
}

// sentEvent is that of a frame that was encoded, about out, nil if it is about no message.
func sentEvent(f *wire.Written, out *outbound, first, last bool) Event {
	ev := Event{Dir: Sent, Kind: f.Kind, At: f.At, Octets: f.Octets}
	if out != nil && (f.Kind == frame.KindData || f.Kind == frame.KindCancel) {
		ev.Lane, ev.Exchange, ev.Reply = out.message.Lane, out.message.Exchange, out.message.Reply
	}
	if f.Kind == frame.KindData {
		ev.First, ev.Last, ev.OneWay = first, last, out.message.OneWay
		ev.Payload, ev.Message = f.Payload, out.payload
	}
	return ev
}

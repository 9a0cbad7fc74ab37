package capture

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"github.com/hhfr/hhfr/pkg/capture/flow"
	"github.com/hhfr/hhfr/pkg/codec/binary"
	"github.com/hhfr/hhfr/pkg/ctxstore"
	"github.com/hhfr/hhfr/pkg/shape"
	"github.com/hhfr/hhfr/pkg/shape/transit"
	"github.com/hhfr/hhfr/pkg/soap"
	"github.com/hhfr/hhfr/pkg/streamer/frame"
	"github.com/hhfr/hhfr/pkg/wsrm/header"
)

// Decoded is one message of a capture: of an hhfr stream, or plain SOAP in HTTP.
type Decoded struct {
	// Number counts exchanges in sending order from 1; request and reply of one exchange share it. Exchanges of which nothing was seen keep their numbers. 0: a negotiation, which is not counted.
	Number int
	// HHFR tells messages of streams; Session, Lane, Exchange and OneWay are theirs.
	HHFR     bool
	Session  [16]byte
	Lane     uint64
	Exchange uint64
	Reply    bool
	OneWay   bool
	// Place is where the message stands in the sequence of its direction (docs/wire-format.md, section 5.1); zero: in none.
	Place frame.Place
	// Src and Dst are the ends; zero where only stream octets are there.
	Src, Dst netip.AddrPort
	// First and Last are the times of its first and last octets, zero where no capture tells; Packet is the number of the packet with the first.
	First, Last time.Time
	Packet      int
	// Head is the HTTP head as received; of a message of a stream nil if it is the default one (docs/negotiation.md). Body is the entity after transfer coding.
	Head, Body []byte
	// Version and Operation are what the envelope says.
	Version   soap.Version
	Operation soap.Name
	// Reliable is what the envelope says about sequences of WS-ReliableMessaging; nil: nothing, or nothing that can be read.
	Reliable *header.Message
	// Wire is the octets on the wire: of its data frames, or of its HTTP message.
	Wire int64
	// State says how far the message can be trusted; plain SOAP is [Unchecked] or [Incomplete]. Why tells more, for people.
	State State
	Why   string
	// Lacks is the fingerprint of the shape that is missing, as a URI, or the beginning of that, if that is why the message is [Undecodable].
	Lacks string
	// LacksContext is the URI of the session's context that is missing, if that is why the message
	// is [Undecodable]: its Body is not given then.
	LacksContext string

	inForm bool // unchanging headers may have been taken out of the body
	origin int  // which direction of its flow began the exchange
	flow   int
}

// SessionString is the session as a UUID, "-" for plain SOAP.
func (d *Decoded) SessionString() string {
	if !d.HHFR {
		return "-"
	}
	s := hex.EncodeToString(d.Session[:])
	return s[:8] + "-" + s[8:12] + "-" + s[12:16] + "-" + s[16:20] + "-" + s[20:]
}

// Client is the end that opened the connection of a stream, as far as the capture tells, and that
// asks in plain SOAP; zero where only stream octets are there.
func (d *Decoded) Client() netip.AddrPort {
	if !d.HHFR && d.Reply || d.HHFR && (d.origin == 1) != d.Reply {
		return d.Dst
	}
	return d.Src
}

// Server is the end that is not Client.
func (d *Decoded) Server() netip.AddrPort {
	if d.Client() == d.Src {
		return d.Dst
	}
	return d.Src
}

// Whole tells whether the body is there, as it was sent.
func (d *Decoded) Whole() bool {
	return d.State == Verified || d.State == Unverified || d.State == Unchecked
}

// Stream is what was found of one hhfr stream, or of those of its directions that are there.
type Stream struct {
	Session  [16]byte
	Src, Dst netip.AddrPort
	// Facts is the JSON comment of a recording, "" if there is none.
	Facts string
	// Octets of the two directions, Src to Dst first.
	Octets [2]StreamOctets
	// Shapes is the number of shapes seen in full.
	Shapes int
	// Problems say where a direction could not be followed.
	Problems []string
	// Cut tells that a direction begins without its hello, ends without its close, or lacks octets.
	Cut bool
}

func (d *Decoded) recognize() {
	r := soap.Recognize(d.Body)
	d.Version, d.Operation = r.Version, r.Operation
	if r.Version != soap.None && d.Whole() {
		d.Reliable = reliable(d.Body)
	}
}

// joiner joins messages with the shapes at hand.
type joiner struct {
	store      ctxstore.Store
	seen       map[[32]byte][]byte
	programs   map[[32]byte]*shape.Program
	names      map[transit.Name]named // what they were found to stand for, once all frames are read
	maxMessage int64
	joiner     shape.Joiner
	unpacker   shape.Unpacker
	compressed binary.Compression
}

// memories are those of a direction's lanes, since the sync before.
type memories struct {
	epoch int
	lanes map[uint64]*laneMemory
}

type laneMemory struct {
	shape.Memory
	lost bool // a message that changed it could not be unpacked
}

// of gives the memory that a message is packed with: its lane's, or one of its own.
func (m *memories) of(g *gathered) *laneMemory {
	if !g.alone || g.stages&binary.Memory == 0 {
		return new(laneMemory)
	}
	if m.lanes == nil || m.epoch != g.epoch {
		m.epoch, m.lanes = g.epoch, map[uint64]*laneMemory{}
	}
	if m.lanes[g.key.Lane] == nil {
		m.lanes[g.key.Lane] = new(laneMemory)
	}
	return m.lanes[g.key.Lane]
}

// program finds a shape in the capture or the store, nil if neither has it, or more than one has its name.
func (j *joiner) program(ctx context.Context, n named) *shape.Program {
	if !n.whole {
		known, looked := j.names[n.name]
		if !looked {
			if octets := j.base(ctx, n.name); octets != nil {
				known = nameOf(sha256.Sum256(octets))
			}
			j.names[n.name] = known
		}
		if n = known; !n.whole {
			return nil
		}
	}
	fp := n.fingerprint
	if p, ok := j.programs[fp]; ok {
		return p
	}
	octets, ok := j.seen[fp]
	if !ok && j.store != nil {
		octets, _ = ctxstore.Shapes{Store: j.store}.Get(ctx, fp)
	}
	var p *shape.Program
	if s, err := shape.Parse(octets); err == nil && s.Fingerprint() == fp {
		p = shape.Compile(s)
	}
	j.programs[fp] = p
	return p
}

// base finds the shape with a name, as packed ones name what they stand on; nil if neither capture nor store has it, or they have two.
func (j *joiner) base(ctx context.Context, name transit.Name) (found []byte) {
	for fp, octets := range j.seen {
		if transit.NameOf(fp) == name {
			if found != nil {
				return nil
			}
			found = octets
		}
	}
	if j.store == nil {
		return found
	}
	for info, err := range j.store.List(ctx, fmt.Sprintf("%s%x", shape.URIPrefix, name[:])) {
		if err != nil {
			return nil
		}
		e, err := j.store.Get(ctx, info.URI)
		if err != nil || bytes.Equal(e.Value, found) {
			continue
		}
		if found != nil {
			return nil
		}
		found = e.Value
	}
	return found
}

// message joins what was gathered.
func (j *joiner) message(ctx context.Context, g *gathered, m *laneMemory) *Decoded {
	d := &Decoded{HHFR: true, Lane: g.key.Lane, Exchange: g.key.Exchange, Reply: g.key.Reply, OneWay: g.oneWay, Place: g.place, Wire: g.wire, State: g.state, Why: g.why,
		First: g.first.Time, Last: g.last.Time, Packet: g.first.PacketNo, inForm: g.stages&frame.Headers != 0}
	cut := d.State == Incomplete || d.State == Cancelled
	err := j.unpack(ctx, g, m, cut)
	if err == nil {
		d.Head, err = j.part(ctx, d, &g.head, cut)
	}
	if err == nil {
		d.Body, err = j.part(ctx, d, &g.body, cut)
	}
	if err != nil && d.Whole() {
		d.State, d.Why = Undecodable, err.Error()
	}
	d.recognize()
	return d
}

// unpack makes the segments of a message what they were before they were packed and compressed (wire-format section 11).
func (j *joiner) unpack(ctx context.Context, g *gathered, m *laneMemory, cut bool) error {
	if g.stages == 0 {
		return nil
	}
	for _, p := range []*part{&g.head, &g.body} {
		if !p.there {
			continue
		}
		packed := p.number != 0 && g.stages&binary.Columns != 0
		var program *shape.Program
		if packed {
			if program = j.program(ctx, p.shape); p.bad || program == nil {
				m.lost = true
				return nil // the part itself will say so
			}
		}
		if !g.alone {
			m = new(laneMemory)
		}
		var at shape.Packing
		for i := range p.segments {
			s := &p.segments[i]
			whole, last := packed && !s.text, i == len(p.segments)-1 && !cut
			var octets []byte
			undo := func(segment []byte) (err error) {
				if !whole {
					octets = bytes.Clone(segment)
					return nil
				}
				octets, err = j.unpackSegment(program, &at, m, segment, last)
				return err
			}
			err := error(nil)
			if g.stages&binary.Zstd != 0 {
				err = j.compressed.Expand(s.octets, whole, undo)
			} else {
				err = undo(s.octets)
			}
			if err != nil {
				m.lost = true
				return err
			}
			s.octets = octets
		}
	}
	return nil
}

func (j *joiner) unpackSegment(program *shape.Program, at *shape.Packing, m *laneMemory, packed []byte, last bool) ([]byte, error) {
	if m.lost = m.lost && !shape.Resets(packed); m.lost && shape.Packed(packed) {
		return nil, errors.New("it needs what messages before it on its lane said, which could not be decoded")
	}
	return j.unpacker.Unpack(nil, program, at, &m.Memory, packed, last, frame.MaxPayload)
}

func (j *joiner) part(ctx context.Context, d *Decoded, p *part, cut bool) (out []byte, err error) {
	if !p.there {
		return nil, nil
	}
	if p.bad {
		return nil, fmt.Errorf("shape number %d is not known", p.number)
	}
	join := func(dst, seg []byte, _, _ bool) ([]byte, error) { return append(dst, seg...), nil }
	if p.number != 0 {
		program := j.program(ctx, p.shape)
		if program == nil {
			d.Lacks = p.shape.uri()
			return nil, fmt.Errorf("neither capture nor store has its shape %s", d.Lacks)
		}
		j.joiner.Reset(program)
		join = j.joiner.Join
	}
	for i, s := range p.segments {
		if out, err = join(out, s.octets, s.text, i == len(p.segments)-1 && !cut); err != nil {
			return out, err
		}
		if int64(len(out)) > j.maxMessage {
			return out, fmt.Errorf("longer than %d octets", j.maxMessage)
		}
	}
	return out, nil
}

// named tells whether the store knows a session.
func (dec *decoder) named(ctx context.Context, session [16]byte) bool {
	if dec.join.store == nil {
		return false
	}
	_, err := dec.join.store.Get(ctx, ctxstore.SessionURI(session))
	return err == nil
}

// decodeStream decodes the directions of one stream; either may have no runs. It returns nil if it is none, or nothing can be trusted.
func (dec *decoder) decodeStream(ctx context.Context, dirs [2][]flow.Run) (*Stream, []*Decoded) {
	var both [2]*direction
	found := false
	for i, runs := range dirs {
		d := dec.join.direction(ctx)
		both[i] = d
		if len(runs) == 0 {
			continue
		}
		if _, opens := frame.Opening(runs[0].Data); !opens && !d.trust(runs, func(session [16]byte) bool { return dec.named(ctx, session) }) {
			continue
		}
		found = true
		for k := range runs {
			d.run(&runs[k])
		}
	}
	if !found {
		return nil, nil
	}
	s := &Stream{Shapes: len(dec.join.seen)}
	for i, d := range both {
		if s.Octets[i] = d.octets; d.known {
			s.Session = d.origin.Session
		}
		for _, p := range d.problems {
			s.Problems = append(s.Problems, [2]string{"first", "second"}[i]+" direction, "+p)
		}
		s.Cut = s.Cut || d.left > 0 || len(dirs[i]) > 1 || d.known && (d.hello == nil || !d.closed)
	}
	return s, dec.joinBoth(ctx, both)
}

func (dec *decoder) joinBoth(ctx context.Context, both [2]*direction) (all []*Decoded) {
	for i, d := range both {
		var lanes memories
		for _, g := range d.messages {
			m := dec.join.message(ctx, g, lanes.of(g))
			m.Session = d.origin.Session
			if m.origin = i; m.Reply {
				m.origin = 1 - i
			}
			for _, c := range both[1-i].refused {
				if c.Message == g.key && m.Why == "" {
					m.Why = "refused: " + c.Code.String() + " " + c.Text
				}
			}
			all = append(all, m)
		}
	}
	return all
}

package flow

import (
	"cmp"
	"container/list"
	"errors"
	"io"
	"net/netip"
	"slices"
	"time"
)

// Limits bound what reassembly keeps. The zero value works.
type Limits struct {
	// FlowOctets is what one TCP connection may take, both directions, in octets; 0 means 256 MiB. What is beyond counts as missing.
	FlowOctets int64
	// Octets is what all connections together may take; 0 means 1 GiB. Beyond it the one that was idle longest is given out as it is.
	Octets int64
	// Flows is how many connections may be open; 0 means 65,536. Beyond it the one that was idle longest is given out as it is.
	Flows int
	// PendingOctets and PendingPieces are what one direction keeps behind a gap before the gap counts as missing; 0 means 4 MiB and 4,096.
	PendingOctets, PendingPieces int
}

// WithDefaults fills in what is zero.
func (l Limits) WithDefaults() Limits {
	l.FlowOctets = cmp.Or(l.FlowOctets, 256<<20)
	l.Octets = cmp.Or(l.Octets, 1<<30)
	l.Flows = cmp.Or(l.Flows, 65536)
	l.PendingOctets = cmp.Or(l.PendingOctets, 4<<20)
	l.PendingPieces = cmp.Or(l.PendingPieces, 4096)
	return l
}

// closedFor is how long, in packet time, a connection that has ended waits for late packets.
const closedFor = 30 * time.Second

// markCost is what a mark counts against octet limits.
const markCost = 64

// Config says what [Flows] and [NewAssembler] do with what they find.
type Config struct {
	Limits Limits
	// Flow is given each TCP connection when it is done: after it ended, at the end of the capture, or when a limit asks for it; IDs are in
	// the order of first packets, the calls may not be. An error ends the reading.
	Flow func(*Flow) error
	// Datagram is given each UDP datagram; nil means that they are only counted.
	Datagram func(Datagram) error
}

// Flow is one TCP connection. Src opened it, if Opened; else it is who sent its first packet in the capture. Dirs[0] is from Src to Dst.
type Flow struct {
	ID          int // from 1
	Src, Dst    netip.AddrPort
	Opened      bool
	First, Last time.Time
	FirstPacket int
	Dirs        [2]Direction
}

// Direction is one direction of a connection. Offsets count octets since the first that is known to have existed: the one behind SYN or, if that is not in the
// capture, the first one seen; missing ones count.
type Direction struct {
	Runs []Run
	// GapAfter is how many octets are missing behind the last run, as far as acknowledgements or FIN tell.
	GapAfter      int64
	SYN, FIN, RST bool
}

// Run is a piece of a direction without a gap. GapBefore is how many octets are missing in front of it: 0 for a first run that begins the
// connection, -1 for one of which that is not known. Marks are in order; the first one is at 0.
type Run struct {
	Offset    int64
	GapBefore int64
	Data      []byte
	Marks     []Mark
}

// End is the offset behind the run.
func (r *Run) End() int64 { return r.Offset + int64(len(r.Data)) }

// Mark says that the octets of a run from At on came with this packet.
type Mark struct {
	At       int
	Time     time.Time
	PacketNo int
	Comments []string
}

// MarkAt is the mark of the packet that brought the octet at index at of Data.
func (r *Run) MarkAt(at int) Mark {
	i, ok := slices.BinarySearchFunc(r.Marks, at, func(m Mark, at int) int { return m.At - at })
	if !ok {
		i--
	}
	if i < 0 {
		return Mark{}
	}
	return r.Marks[i]
}

// Datagram is one UDP datagram; Missing octets of it were not captured.
type Datagram struct {
	Src, Dst netip.AddrPort
	Time     time.Time
	PacketNo int
	Data     []byte
	Missing  int
	Comments []string
}

// Stats count what was found.
type Stats struct {
	Packets       int
	Undecoded     map[string]int // packets, by reason
	Fragments     int            // packets that were parts of datagrams put together later, or never
	LostDatagrams int            // fragmented datagrams given up
	TCPFlows      int
	TCPOctets     int64 // payload given out
	UDPDatagrams  int
	Gaps          int   // in directions of connections
	MissingOctets int64 // in gaps; of those between datagrams the least that is known
	Repeated      int64 // octets that were there before
	Dropped       int64 // octets beyond limits
	CutPackets    int   // packets captured in part
	Evicted       int   // connections given out early, for a limit
	Truncated     bool  // the capture is cut off or damaged
	TruncatedAt   int64 // where, see [Error]
}

// Flows reads a whole capture. A capture that is cut off or damaged is no error, [Stats.Truncated] tells; errors are those of reading
// ([ReadFailed]) and of the callbacks.
func Flows(f *File, c Config) (Stats, error) {
	a := NewAssembler(c)
	for {
		p, err := f.Next()
		var e *Error
		switch {
		case err == nil:
			if err := a.Add(p); err != nil {
				return a.stats, err
			}
			continue
		case errors.As(err, &e) && e.Code != ReadFailed:
			a.stats.Truncated, a.stats.TruncatedAt = true, e.At
		case !errors.Is(err, io.EOF):
			return a.stats, err
		}
		return a.Close()
	}
}

// Assembler puts TCP connections together, packet by packet. It is not safe for concurrent use.
type Assembler struct {
	cfg     Config
	dec     decoder
	flows   map[flowKey]*openFlow
	recent  *list.List // of *openFlow, idle longest first
	closing []*openFlow
	octets  int64
	stats   Stats
}

// flowKey has the lower address first.
type flowKey struct {
	a, b  netip.AddrPort
	encap uint64
}

type openFlow struct {
	Flow
	key      flowKey
	dirs     [2]assembly
	place    *list.Element
	octets   int64 // against the limits
	closed   bool
	closedAt time.Time
	gone     bool
}

// NewAssembler calls back as c says.
func NewAssembler(c Config) *Assembler {
	c.Limits = c.Limits.WithDefaults()
	return &Assembler{cfg: c, flows: map[flowKey]*openFlow{}, recent: list.New(), stats: Stats{Undecoded: map[string]int{}}}
}

// Add takes the next packet and keeps its slices. Errors are those of the callbacks.
func (a *Assembler) Add(p Packet) error {
	a.stats.Packets++
	if len(p.Data) < p.Length {
		a.stats.CutPackets++
	}
	reason, waits := a.dec.decode(p)
	switch s := &a.dec.seg; {
	case waits:
		a.stats.Fragments++
		return nil
	case reason != "":
		a.stats.Undecoded[reason]++
		return nil
	case s.udp:
		a.stats.UDPDatagrams++
		if a.cfg.Datagram == nil {
			return nil
		}
		return a.cfg.Datagram(Datagram{Src: s.src, Dst: s.dst, Time: s.time, PacketNo: s.no, Data: s.payload, Missing: s.short, Comments: s.comments})
	default:
		return a.tcp(s)
	}
}

// Close gives out all connections that are left, by ID.
func (a *Assembler) Close() (Stats, error) {
	rest := make([]*openFlow, 0, len(a.flows))
	for _, f := range a.flows {
		rest = append(rest, f)
	}
	slices.SortFunc(rest, func(x, y *openFlow) int { return x.ID - y.ID })
	for _, f := range rest {
		if err := a.give(f); err != nil {
			return a.stats, err
		}
	}
	a.stats.LostDatagrams = a.dec.frags.lost + len(a.dec.frags.waiting)
	return a.stats, nil
}

// give ends a flow and hands it out.
func (a *Assembler) give(f *openFlow) error {
	for i := range f.dirs {
		f.dirs[i].finish(&a.stats)
		f.Dirs[i] = f.dirs[i].Direction
	}
	out := f.Flow
	f.Flow, f.dirs, f.gone = Flow{}, [2]assembly{}, true // closing may still hold f
	delete(a.flows, f.key)
	a.recent.Remove(f.place)
	a.octets -= f.octets
	if a.cfg.Flow == nil {
		return nil
	}
	return a.cfg.Flow(&out)
}

// tidy gives out connections that ended a while ago, and those that limits leave no room for.
func (a *Assembler) tidy(now time.Time) error {
	for len(a.closing) > 0 && (a.closing[0].gone || now.Sub(a.closing[0].closedAt) > closedFor) {
		f := a.closing[0]
		a.closing[0] = nil
		a.closing = a.closing[1:]
		if f.gone {
			continue
		}
		if err := a.give(f); err != nil {
			return err
		}
	}
	if len(a.closing) > 2*a.cfg.Limits.Flows {
		a.closing = slices.DeleteFunc(a.closing, func(f *openFlow) bool { return f.gone })
	}
	for len(a.flows) > a.cfg.Limits.Flows || a.octets > a.cfg.Limits.Octets && len(a.flows) > 0 {
		a.stats.Evicted++
		if err := a.give(a.recent.Front().Value.(*openFlow)); err != nil {
			return err
		}
	}
	return nil
}

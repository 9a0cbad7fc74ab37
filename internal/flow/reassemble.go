package flow

import (
	"cmp"
	"container/list"
	"net/netip"
	"slices"
	"time"

	"github.com/hhfr/hhfr/internal/tlsrecord"
)

// Limits bound what reassembly keeps. The zero value works.
type Limits struct {
	// Octets is how many bytes may wait for missing ones before them, of all connections together;
	// 0 means 16 MiB. Flows is how many connections may be open; 0 means 8,192. Beyond them the one
	// that was idle longest is passed on as it is: of those that one end has ended, if there are.
	Octets int64
	Flows  int
	// PendingOctets and PendingPieces are what one direction keeps after a gap before the gap
	// counts as missing; 0 means 4 MiB and 4,096.
	PendingOctets, PendingPieces int
}

// WithDefaults replaces zero values.
func (l Limits) WithDefaults() Limits {
	l.Octets = cmp.Or(l.Octets, 16<<20)
	l.Flows = cmp.Or(l.Flows, 8192)
	l.PendingOctets = cmp.Or(l.PendingOctets, 4<<20)
	l.PendingPieces = cmp.Or(l.PendingPieces, 4096)
	return l
}

// closedFor is how long, in packet time, a connection that has ended waits for late packets.
const closedFor = 30 * time.Second

// markCost is what a mark counts against limits in bytes.
const markCost = 64

// Config configures what an [Assembler] does with what it finds.
type Config struct {
	Limits Limits
	// Keys are the secrets by which TLS is decrypted; [Read] adds those in its files. nil: nothing
	// is decrypted.
	Keys *tlsrecord.KeyLog
	// Secured is called when a connection is found to be in TLS, before anything of it is passed
	// on; nil: nobody wants to know.
	Secured func()
	// Ports: TCP and UDP from and to other ports are left out; empty: none are.
	Ports []uint
	// Flow is called with each TCP connection before its first bytes, or at its end if it has none,
	// and returns its receiver; nil: there is none.
	Flow func(*Flow) Receiver
	// Datagram is called with each UDP datagram; nil means that they are only counted. An error
	// ends the reading.
	Datagram func(UDPDatagram) error
	// Ending is called once with each TCP connection when its first FIN or RST is seen, after the
	// bytes before it that are in order; nil: nobody wants to know. An error ends the reading.
	Ending func(*Flow) error
}

// Stats count what was found.
type Stats struct {
	Packets       int
	Undecoded     map[string]int // packets, by reason
	Fragments     int            // packets that were parts of datagrams put together later, or never
	LostDatagrams int            // fragmented datagrams given up
	TCPFlows      int
	TCPOctets     int64 // payload passed on
	UDPDatagrams  int
	Gaps          int   // in directions of connections
	MissingOctets int64 // in gaps; for those between datagrams the least number that is known
	Repeated      int64 // bytes that were there before
	Dropped       int64 // bytes beyond limits
	CutPackets    int   // packets captured in part
	Evicted       int   // connections that went on after a limit required to pass them on
	Truncated     bool  // the capture is cut off or damaged
	TruncatedAt   int64 // where, see [Error]
}

// Assembler reassembles TCP connections, packet by packet. It is not safe for concurrent use.
type Assembler struct {
	cfg     Config
	dec     decoder
	flows   map[flowKey]*openFlow
	recent  *list.List // of *openFlow, idle longest first
	halves  *list.List // the same of those that one end has ended
	evicted recentKeys
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
	begin    func(*Flow) Receiver // nil: it was called already
	receiver Receiver
	err      error // of the receiver
	packets  int
	place    *list.Element
	in       *list.List // that has place
	resumed  bool       // it was evicted, and only packets without bytes came since
	closed   bool
	closedAt time.Time
	gone     bool
}

// NewAssembler returns an assembler that calls back as c says.
func NewAssembler(c Config) *Assembler {
	c.Limits = c.Limits.WithDefaults()
	return &Assembler{
		cfg:     c,
		flows:   map[flowKey]*openFlow{},
		recent:  list.New(),
		halves:  list.New(),
		evicted: recentKeys{most: 4 * c.Limits.Flows, has: map[flowKey]bool{}},
		stats:   Stats{Undecoded: map[string]int{}},
	}
}

// Add takes the next packet and keeps its slices. Errors are those of the callbacks.
func (a *Assembler) Add(p CapturedPacket) error {
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
	case len(a.cfg.Ports) > 0 && !slices.ContainsFunc(a.cfg.Ports, func(port uint) bool {
		return port == uint(s.src.Port()) || port == uint(s.dst.Port())
	}):
		return nil
	case s.udp:
		a.stats.UDPDatagrams++
		if a.cfg.Datagram == nil {
			return nil
		}
		return a.cfg.Datagram(UDPDatagram{Src: s.src, Dst: s.dst, Time: s.time, PacketNo: s.no, Data: s.payload,
			Missing: s.short, Comments: s.comments})
	default:
		return a.tcp(s)
	}
}

// Close passes on all connections that are left, by ID.
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

// give ends a flow.
func (a *Assembler) give(f *openFlow) error {
	a.octets -= f.size()
	for i := range f.dirs {
		f.dirs[i].finish(&a.stats)
		f.Ends[i] = f.dirs[i].End
	}
	f.gone = true
	delete(a.flows, f.key)
	f.in.Remove(f.place)
	f.receive()
	f.flush()
	if f.err == nil && f.receiver != nil {
		f.err = f.receiver.Closed()
	}
	f.dirs, f.receiver = [2]assembly{}, nil // closing may still refer to f
	return f.err
}

// tidy passes on connections that ended more than closedFor ago, and those beyond the limits.
func (a *Assembler) tidy(now time.Time) error {
	for len(a.closing) > 0 && (a.closing[0].gone || now.Sub(a.closing[0].closedAt) > closedFor ||
		len(a.flows) > a.cfg.Limits.Flows) {
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
		if err := a.evict(); err != nil {
			return err
		}
	}
	return nil
}

// evict passes a connection on before its end.
func (a *Assembler) evict() error {
	idle := a.halves.Front()
	if idle == nil {
		idle = a.recent.Front()
	}
	f := idle.Value.(*openFlow)
	f.Evicted = true
	a.evicted.add(f.key)
	return a.give(f)
}

// recentKeys are the keys of the connections that were evicted last.
type recentKeys struct {
	most  int
	has   map[flowKey]bool
	order []flowKey // the oldest first; some of them are taken already
}

func (r *recentKeys) add(key flowKey) {
	if len(r.order) >= r.most {
		delete(r.has, r.order[0])
		r.order = r.order[1:]
	}
	r.has[key] = true
	r.order = append(r.order, key)
}

// take removes a key, and reports whether it was there.
func (r *recentKeys) take(key flowKey) bool {
	was := r.has[key]
	delete(r.has, key)
	return was
}

package pcapng

import (
	"cmp"
	"encoding/binary"
	"io"
	"slices"
	"time"

	"github.com/hhfr/hhfr/internal/pcap"
)

// Medium is one file of a recording.
type Medium interface {
	io.Writer
	io.ReaderAt
	Truncate(size int64) error
}

// Rotation has a recording go on in further files. Each begins with what a reader needs of the
// earlier ones: of each open connection the packets from the last place on at which a reader can
// join, and its last comment. The functions are called with the recorder locked: they must not use
// it.
type Rotation struct {
	// Size and Age are those of a file, in bytes and since its first packet, from which on the next
	// packet goes into another; 0: any. A file is at least twice as long as what it repeats.
	Size int64
	Age  time.Duration
	// Join returns what looks for those places in one direction of a connection.
	Join func() EntryFinder
	// Open returns the next file, which has nothing in it.
	Open func() (Medium, error)
	// Definitions returns the bytes of further connections that come first in a file, by the
	// payloads that are repeated, one for each direction of a connection.
	Definitions func(repeated [][]byte) [][]byte
	// Opened is called when the new file has all of that: the one before is complete.
	Opened func() error
}

// EntryFinder sees the bytes of a direction.
type EntryFinder interface {
	// Write takes the next bytes. It returns how many bytes before their end a reader can join;
	// less than 0: there is no such place that it did not return before. stream: the direction has
	// to be read from such a place on, or from its beginning; other connections are requests and
	// replies.
	Write(b []byte) (before int, stream bool)
}

const (
	// maxRepeated bounds the payload of a direction that is repeated, in bytes; it is twice what
	// passes between two places at which a reader of a stream can join.
	maxRepeated = 2 << 20
	// maxBlocks bounds its number of packets.
	maxBlocks = 1 << 15
	// tryAgain is how long a recording that could not be written pauses.
	tryAgain = time.Minute
)

// history is what has to be repeated of one direction.
type history struct {
	joiner EntryFinder
	blocks []block
	octets int64 // that have passed
	lost   bool  // there was too much: nothing is repeated, until a reader can join again
}

// block is a packet with a payload in the current file.
type block struct {
	at      int64 // in the file
	size    int
	payload int
	end     int64 // of its payload in the direction
	conn    *RecordedConn
	side    *packetSide
}

// repetition is a packet that is repeated.
type repetition struct {
	block
	data []byte
	when time.Time
}

// Rotate has the recording go on in further files. first is the file that the recorder writes to.
// It is called before anything is recorded.
func (r *Recorder) Rotate(first Medium, rotation Rotation) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.file, r.rotation, r.live = first, &rotation, map[*RecordedConn]struct{}{}
}

// due reports whether the next packet goes into another file. The lock is held.
func (r *Recorder) due(now time.Time) bool {
	if r.rotation == nil || !r.failed.IsZero() && now.Sub(r.failed) < tryAgain {
		return false
	}
	if r.err != nil {
		return !r.failed.IsZero()
	}
	size, age := r.rotation.Size, r.rotation.Age
	return !r.began.IsZero() && (size > 0 && r.at >= max(size, 2*r.repeated) || age > 0 && now.Sub(r.began) >= age)
}

// remember notes a packet with a payload that was written from an offset on. The lock is held.
func (c *RecordedConn) remember(from *packetSide, at int64, payload []byte) {
	h := &from.history
	if h.joiner == nil {
		h.joiner = c.rec.rotation.Join()
	}
	before, stream := h.joiner.Write(payload)
	c.stream = c.stream || stream
	if !c.stream && from == c.opener && c.last != from {
		c.forget(false) // a request: the exchange before it is over
	}
	c.last = from
	h.octets += int64(len(payload))
	if before >= 0 {
		join := h.octets - int64(before)
		h.blocks = slices.DeleteFunc(h.blocks, func(b block) bool { return b.end <= join })
		h.lost = false
	}
	if len(h.blocks) == maxBlocks || len(h.blocks) > 0 && h.octets-h.blocks[0].end > maxRepeated {
		h.blocks, h.lost = nil, true
	}
	if !h.lost {
		h.blocks = append(h.blocks, block{at: at, size: int(c.rec.at - at), payload: len(payload), end: h.octets,
			conn: c, side: from})
	}
}

// forget has nothing of the connection repeated. lost: nor what follows, until a reader can join.
func (c *RecordedConn) forget(lost bool) {
	for _, side := range []*packetSide{c.out, c.in} {
		side.blocks, side.lost = nil, lost
	}
}

// rotate goes on in another file, if there can be one. The lock is held.
func (r *Recorder) rotate(now time.Time) {
	again, err := r.repetitions()
	var next Medium
	if err == nil {
		next, err = r.rotation.Open()
	}
	if err != nil {
		r.tell(err)
		r.failed = now // the current file goes on, if it could be written
		return
	}
	r.file, r.w, r.at, r.err, r.began, r.failed = next, next, 0, nil, time.Time{}, time.Time{}
	r.begin()
	var payloads [][]byte
	of := map[*packetSide]int{}
	for _, p := range again {
		if _, known := of[p.side]; !known {
			of[p.side] = len(payloads)
			payloads = append(payloads, nil)
		}
		i := of[p.side]
		payloads[i] = append(payloads[i], p.data[len(p.data)-p.payload:]...)
	}
	for _, definitions := range r.rotation.Definitions(payloads) {
		r.define(definitions)
	}
	r.repeat(again)
	r.repeated = r.at
	if r.err == nil {
		if err := r.rotation.Opened(); err != nil {
			r.fail(err)
		}
	}
}

// repetitions reads what is repeated from the current file, in its order. The lock is held.
func (r *Recorder) repetitions() (all []repetition, err error) {
	for c := range r.live {
		for _, side := range []*packetSide{c.out, c.in} {
			for _, b := range side.blocks {
				all = append(all, repetition{block: b})
			}
		}
	}
	slices.SortStableFunc(all, func(a, b repetition) int { return cmp.Compare(a.at, b.at) })
	for i := range all {
		if err := all[i].read(r.file); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// packetHead is the length of an enhanced packet block before its data, in bytes.
const packetHead = 28

// read reads the packet from a file that this package wrote.
func (p *repetition) read(file Medium) error {
	b := make([]byte, p.size)
	if _, err := file.ReadAt(b, p.at); err != nil {
		return err
	}
	le := binary.LittleEndian
	length := le.Uint32(b[20:])
	p.when = time.Unix(0, int64(uint64(le.Uint32(b[12:]))<<32|uint64(le.Uint32(b[16:]))))
	p.data = b[packetHead : packetHead+int(length)]
	return nil
}

// repeat writes packets again, with their times; the first of a connection has its comment. The
// lock is held.
func (r *Recorder) repeat(all []repetition) {
	for c := range r.live {
		c.forget(false)
	}
	noted := map[*RecordedConn]bool{}
	for _, p := range all {
		var comments []string
		if !noted[p.conn] && p.conn.noted != "" {
			comments = []string{p.conn.noted}
		}
		noted[p.conn] = true
		at := r.at
		record := pcap.PacketRecord{Time: p.when, Data: p.data, Comments: comments}
		if r.flush(pcap.AppendPacket(r.buf[:0], record)); r.err != nil {
			return
		}
		p.at, p.size = at, int(r.at-at)
		p.side.blocks = append(p.side.blocks, p.block)
	}
}

// define writes a connection on which one end says all. The lock is held.
func (r *Recorder) define(octets []byte) {
	c := &RecordedConn{rec: r}
	from, to := madeUp(r.conns, true)
	isn := r.nextISN()
	c.out, c.in = &packetSide{from: from, seq: isn, acked: isn}, &packetSide{from: to, seq: ^isn, acked: ^isn}
	c.open(c.out, c.in)
	c.data(c.out, c.in, octets)
	c.endNow(c.out, c.in, false)
	c.endNow(c.in, c.out, false)
}

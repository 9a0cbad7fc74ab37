package flow

import (
	"bytes"
	"errors"
	"sort"

	"github.com/hhfr/hhfr/internal/http1"
)

// httpParser cuts one direction into messages.
type httpParser struct {
	http    *HTTP
	dir     int
	replies bool

	buf    []byte // bytes that belong to no message yet, from at on
	at     int
	offset int64 // offset of buf in the direction
	marks  []packetMark
	mark   Mark // the last one
	fin    bool

	lost    bool         // search for the next start line
	resumed bool         // bytes were lost between the message before and the next one
	looked  int          // index in buf: no head ends before it
	begun   *HTTPMessage // message whose head is not whole, and that has its reply already
	message *HTTPMessage
	body    *http1.Body // body of message; nil: it has none yet
	framing http1.Framing
}

// packetMark records that the bytes of buf from At on came with a packet.
type packetMark struct {
	At int
	Mark
}

func beginsReply(b []byte) bool { return bytes.HasPrefix(bytes.TrimLeft(b, "\r\n"), []byte("HTTP/1.")) }

// fresh reports whether nothing has come yet.
func (p *httpParser) fresh() bool { return p.offset == 0 && len(p.buf) == 0 }

// isStart reports whether b begins with a start line of this direction's kind.
func (p *httpParser) isStart(b []byte) bool {
	return http1.LooksLikeStart(b) && (!p.http.begun || beginsReply(b) == p.replies)
}

// undecided reports whether b is too short to decide whether it begins with a start line.
func undecided(b []byte) bool {
	const enough = 32
	b = bytes.TrimLeft(b, "\r\n")
	return len(b) < enough && bytes.IndexByte(b, '\n') < 0
}

// take takes the bytes of a packet.
func (p *httpParser) take(b []byte, m Mark) {
	p.marks = append(p.marks, packetMark{len(p.buf), m})
	p.mark = m
	if len(p.buf) > 0 {
		p.buf = append(p.buf, b...)
	} else {
		p.buf = b[:len(b):len(b)] // until there is a rest
	}
	p.parse(false)
	p.forget()
}

// forget drops what was read, and keeps the rest.
func (p *httpParser) forget() {
	n := len(p.marks)
	if p.at < len(p.buf) {
		n = max(p.markAt(), 0)
	}
	p.marks = p.marks[:copy(p.marks, p.marks[n:])]
	for i := range p.marks {
		p.marks[i].At -= p.at
	}
	p.offset += int64(p.at)
	p.looked = max(p.looked-p.at, 0)
	switch rest := p.buf[p.at:]; {
	case len(rest) == 0:
		p.buf, p.marks = nil, nil
	case p.at > 0 || cap(p.buf) == len(p.buf): // the memory may belong to the caller
		p.buf = bytes.Clone(rest)
	}
	p.at = 0
}

// markAt returns the index of the mark of the packet that brought the current byte.
func (p *httpParser) markAt() int {
	return sort.Search(len(p.marks), func(i int) bool { return p.marks[i].At > p.at }) - 1
}

// parse reads what is there; last: this run has no more bytes.
func (p *httpParser) parse(last bool) {
	for !p.http.ended(p.replies) {
		switch {
		case p.body != nil:
			if !p.entity() {
				return
			}
		case p.at == len(p.buf), p.lost && !p.seek(last):
			return
		default:
			if !p.head(last) {
				return
			}
		}
	}
}

// seek moves to the next position where a message may begin.
func (p *httpParser) seek(last bool) bool {
	for i := sort.Search(len(p.marks), func(i int) bool { return p.marks[i].At >= p.at }); i < len(p.marks); i++ {
		at := p.marks[i].At
		start := p.isStart(p.buf[at:])
		if !start && (last || !undecided(p.buf[at:])) {
			continue
		}
		p.http.Skipped[p.dir] += int64(at - p.at)
		p.at, p.looked = at, at
		if start {
			p.http.roles(p.dir, beginsReply(p.buf[at:]))
			p.lost = false
		}
		return start
	}
	p.http.Skipped[p.dir] += int64(len(p.buf) - p.at)
	p.at = len(p.buf)
	p.resumed = true
	return false
}

// head reads a head; false: more has to come.
func (p *httpParser) head(last bool) bool {
	b := p.buf[p.at:]
	start := p.isStart(b)
	switch {
	case !start && !last && undecided(b):
		return false
	case !start:
		p.pass()
		return true
	case !last && len(b) < p.http.cfg.Head && !p.blankLine():
		return false
	}
	m := p.next()
	h, n, err := http1.ParseHead(b, p.http.cfg.Head)
	switch {
	case errors.Is(err, http1.ErrIncomplete):
		if !last {
			return false
		}
		p.octets(m, len(b))
		m.Why = WhyCut // until the end of the run is known
		if p.message = m; !p.replies {
			p.http.add(m)
		}
		return false
	case err != nil || h.IsReply() != p.replies:
		p.lost = true
		m.Why, m.Err = WhyMalformed, err
		p.octets(m, p.nextMark()-p.at)
		if !p.replies {
			p.http.add(m)
		}
		p.give(m)
		return true
	}
	p.http.Heads++
	m.Octets, m.head = h.Octets, h // which nobody writes to: rests are copied
	p.advance(m, n)
	p.begin(m)
	return true
}

// next returns the message that begins with the current byte.
func (p *httpParser) next() *HTTPMessage {
	if p.begun == nil {
		first := p.marks[p.markAt()]
		return &HTTPMessage{Offset: p.offset + int64(p.at), First: first.Time, FirstPacket: first.PacketNo,
			acked: first.Acked}
	}
	return p.begun
}

// begins reports whether a head has begun that is not whole.
func (p *httpParser) begins() bool {
	return p.body == nil && !p.lost && p.at < len(p.buf) && p.isStart(p.buf[p.at:])
}

// begin reads the length of the body from a head.
func (p *httpParser) begin(m *HTTPMessage) {
	var err error
	if p.replies {
		p.framing, err = http1.ReplyFraming(&m.head, p.http.method(m, p.resumed))
	} else {
		p.framing, err = http1.RequestFraming(&m.head)
		p.http.add(m)
	}
	for _, d := range p.framing.Doubts {
		m.Doubts = append(m.Doubts, d.String())
	}
	if err != nil {
		m.Why, m.Err, p.lost = WhyMalformed, err, true
		p.give(m)
		return
	}
	p.message, p.body = m, http1.NewBody(p.framing)
	if m.Coding = codingOf(&m.head); m.Coding == "" {
		m.Body = p.http.cfg.Bodies()
	} else {
		m.Body = p.http.cfg.Coded()
	}
}

// blankLine reports whether a head ends in the bytes so far.
func (p *httpParser) blankLine() bool {
	from := max(p.looked-3, p.at)
	p.looked = len(p.buf)
	return bytes.Contains(p.buf[from:], []byte("\n\r\n")) || bytes.Contains(p.buf[from:], []byte("\n\n"))
}

// bytes makes the next n bytes those of a head.
func (p *httpParser) octets(m *HTTPMessage, n int) {
	m.Octets = bytes.Clone(p.buf[p.at : p.at+n])
	p.advance(m, n)
}

// pass skips the current byte: it begins no message. seek counts the others.
func (p *httpParser) pass() {
	p.lost, p.resumed = true, true
	if m := p.begun; m != nil { // a reply was paired with this request
		p.octets(m, 1)
		p.begun, m.Why = nil, WhyMalformed
		p.give(m)
		return
	}
	p.at++
	p.http.Skipped[p.dir]++
}

// nextMark returns where the next packet's bytes begin.
func (p *httpParser) nextMark() int {
	if i := p.markAt() + 1; i < len(p.marks) {
		return p.marks[i].At
	}
	return len(p.buf)
}

// advance makes the next n bytes of the run part of m.
func (p *httpParser) advance(m *HTTPMessage, n int) {
	if n == 0 {
		return
	}
	for i := max(p.markAt(), 0); i < len(p.marks) && p.marks[i].At < p.at+n; i++ {
		if mark := p.marks[i]; mark.PacketNo >= m.LastPacket {
			m.Last, m.LastPacket = mark.Time, mark.PacketNo
		}
	}
	p.at += n
	m.Wire += int64(n)
}

// entity reads the body after a head; false: more has to come.
func (p *httpParser) entity() bool {
	m := p.message
	for !p.body.Done() && p.at < len(p.buf) {
		entity, n, err := p.body.Write(p.buf[p.at:])
		p.keep(m, entity)
		p.advance(m, n)
		if err != nil {
			m.Why, m.Err, p.lost = WhyMalformed, err, true
			p.give(m)
			return true
		}
	}
	if !p.body.Done() {
		return false
	}
	p.give(m)
	return true
}

func (p *httpParser) keep(m *HTTPMessage, entity []byte) {
	if m.Why != 0 || len(entity) == 0 {
		return
	}
	if room := p.http.cfg.Body - m.Body.Len(); int64(len(entity)) > room {
		m.Why, entity = WhyLimit, entity[:room]
	}
	if _, err := m.Body.Write(entity); err != nil {
		m.Err = err
	}
}

// give ends a message.
func (p *httpParser) give(m *HTTPMessage) {
	p.message, p.body = nil, nil
	if m.Body == nil {
		m.Body = p.http.cfg.Bodies()
	}
	if len(m.head.Octets) > 0 {
		decodeContent(m, p.http.cfg.Body, p.http.cfg.Bodies)
	}
	if p.replies {
		p.http.reply(m, p.resumed)
	} else {
		p.http.asked(m)
	}
	p.resumed = p.lost
}

// endOfRun ends what is open, before missing bytes, or at the end; -1 if their number is not known.
// The body of a message continues over a gap where its length is known.
func (p *httpParser) endOfRun(gap int64, last bool) {
	p.parse(true)
	m := p.message
	why := WhyGap
	if last && gap == 0 {
		why = WhyCut
	}
	switch {
	case m == nil:
	case p.body == nil:
		m.Why = why
		p.give(m)
	case last:
		if err := p.body.Close(); err != nil || gap > 0 || !p.fin {
			m.Missing += min(gap, p.body.Left())
			if m.Why == 0 {
				m.Why = why
			}
		}
		p.give(m)
	default:
		p.overGap(m, gap)
	}
	p.http.Skipped[p.dir] += int64(len(p.buf) - p.at)
	p.at = len(p.buf)
	p.forget()
	if p.body == nil {
		p.lost, p.resumed = true, true
	}
}

// overGap continues after a gap, if the body does; else it ends the message.
func (p *httpParser) overGap(m *HTTPMessage, gap int64) {
	if m.Why == 0 {
		m.Why = WhyGap
	}
	switch {
	case p.framing.Kind == http1.UntilClose:
	case gap < 0, p.framing.Kind != http1.Length:
		p.give(m)
		return
	case p.body.Left() < gap: // the body ends somewhere in the gap
		m.Missing += p.body.Left()
		p.give(m)
		return
	default:
		p.body.Skip(gap)
	}
	m.Missing += max(gap, 0)
	if p.framing.Kind == http1.Length && p.body.Done() {
		p.give(m)
	}
}

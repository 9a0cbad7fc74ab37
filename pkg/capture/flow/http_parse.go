package flow

import (
	"bytes"
	"errors"
	"sort"

	"github.com/hhfr/hhfr/internal/http1"
)

// httpParser cuts one direction into messages.
type httpParser struct {
	dir     *Direction
	cfg     HTTPConfig
	replies bool
	run, at int  // where the next message begins, if lost is not set
	lost    bool // look for the next start line
	resumed bool // octets were lost between the message before and the one given last
	skipped int64
}

func newHTTPParser(d *Direction, c HTTPConfig, replies bool) *httpParser {
	return &httpParser{dir: d, cfg: c, replies: replies, lost: true}
}

func beginsReply(b []byte) bool { return bytes.HasPrefix(bytes.TrimLeft(b, "\r\n"), []byte("HTTP/1.")) }

// isStart reports whether b begins with a start line of this direction's kind.
func (p *httpParser) isStart(b []byte) bool {
	return http1.LooksLikeStart(b) && beginsReply(b) == p.replies
}

// next gives the next message, nil at the end. method tells the method of the request that a reply which begins in a packet answers.
func (p *httpParser) next(method func(m *Message, resumed bool) string) *Message {
	resumed := p.lost || p.run < len(p.dir.Runs) && p.at >= len(p.dir.Runs[p.run].Data)
	for {
		if !p.seek() {
			return nil
		}
		p.resumed = resumed
		if m := p.message(method); m != nil {
			return m
		}
		resumed = true
	}
}

// seek moves to the next place where a message may begin.
func (p *httpParser) seek() bool {
	for ; p.run < len(p.dir.Runs); p.run, p.at, p.lost = p.run+1, 0, true {
		r := &p.dir.Runs[p.run]
		if !p.lost {
			if p.at < len(r.Data) {
				return true
			}
			continue
		}
		for i := sort.Search(len(r.Marks), func(i int) bool { return r.Marks[i].At >= p.at }); i < len(r.Marks); i++ {
			if at := r.Marks[i].At; p.isStart(r.Data[at:]) {
				p.skipped += int64(at - p.at)
				p.at, p.lost = at, false
				return true
			}
		}
		p.skipped += int64(len(r.Data) - p.at)
	}
	return false
}

// message reads one message at the place found; nil means that there is none here, and that the parser is lost.
func (p *httpParser) message(method func(*Message, bool) string) *Message {
	r := &p.dir.Runs[p.run]
	first := r.MarkAt(p.at)
	m := &Message{Offset: r.Offset + int64(p.at), First: first.Time, FirstPacket: first.PacketNo}
	h, n, err := http1.ParseHead(r.Data[p.at:], p.cfg.Head)
	switch {
	case errors.Is(err, http1.ErrIncomplete):
		if !p.isStart(r.Data[p.at:]) {
			p.pass()
			return nil
		}
		m.Octets = r.Data[p.at:]
		p.advance(m, len(m.Octets))
		m.Why = p.ending()
		return m
	case err != nil || h.IsReply() != p.replies:
		if !p.isStart(r.Data[p.at:]) {
			p.pass()
			return nil
		}
		p.lost = true
		m.Why, m.Err = WhyMalformed, err
		end := p.nextMark(r)
		m.Octets = r.Data[p.at:end]
		p.advance(m, end-p.at)
		return m
	}
	m.Head, m.Octets = h, h.Octets
	var f http1.Framing
	if p.replies {
		f, err = http1.ReplyFraming(&h, method(m, p.resumed))
	} else {
		f, err = http1.RequestFraming(&h)
	}
	m.Doubts = f.Doubts
	p.advance(m, n)
	if err != nil {
		m.Why, m.Err, p.lost = WhyMalformed, err, true
		return m
	}
	p.body(m, f)
	decodeContent(m, p.cfg.Body)
	return m
}

// pass gives up on the octet at hand: it begins no message. seek counts the others.
func (p *httpParser) pass() {
	p.at++
	p.skipped++
	p.lost = true
}

// nextMark is where the next packet's octets begin.
func (p *httpParser) nextMark(r *Run) int {
	i := sort.Search(len(r.Marks), func(i int) bool { return r.Marks[i].At > p.at })
	if i < len(r.Marks) {
		return r.Marks[i].At
	}
	return len(r.Data)
}

// advance makes the next n octets of the run part of m.
func (p *httpParser) advance(m *Message, n int) {
	if n == 0 {
		return
	}
	r := &p.dir.Runs[p.run]
	i := sort.Search(len(r.Marks), func(i int) bool { return r.Marks[i].At > p.at }) - 1
	for i = max(i, 0); i < len(r.Marks) && r.Marks[i].At < p.at+n; i++ {
		mark := r.Marks[i]
		if mark.At >= p.at || m.Wire == 0 { // else counted with the octets before
			m.Comments = append(m.Comments, mark.Comments...)
		}
		if mark.PacketNo >= m.LastPacket {
			m.Last, m.LastPacket = mark.Time, mark.PacketNo
		}
	}
	p.at += n
	m.Wire += int64(n)
}

// ending says why a message ends with the run.
func (p *httpParser) ending() Why {
	if p.run+1 < len(p.dir.Runs) || p.dir.GapAfter > 0 {
		return WhyGap
	}
	return WhyCut
}

// body reads the body behind a head, across gaps where its length is known.
func (p *httpParser) body(m *Message, f http1.Framing) {
	b := http1.NewBody(f)
	owned := false
	for !b.Done() {
		r := &p.dir.Runs[p.run]
		if p.at == len(r.Data) {
			if !p.overGap(m, b, f) {
				return
			}
			continue
		}
		entity, n, err := b.Write(r.Data[p.at:])
		if m.Why == 0 && len(entity) > 0 {
			if room := p.cfg.Body - int64(len(m.Entity)); int64(len(entity)) > room {
				m.Why, entity = WhyLimit, entity[:room]
			}
			if m.Entity == nil {
				m.Entity = entity[:len(entity):len(entity)]
			} else {
				if !owned {
					m.Entity, owned = bytes.Clone(m.Entity), true
				}
				m.Entity = append(m.Entity, entity...)
			}
		}
		p.advance(m, n)
		if err != nil {
			m.Why, m.Err, p.lost = WhyMalformed, err, true
			return
		}
	}
}

// overGap goes on in the next run, if the body does; else it ends the message.
func (p *httpParser) overGap(m *Message, b *http1.Body, f http1.Framing) bool {
	if p.run+1 == len(p.dir.Runs) {
		if err := b.Close(); err != nil || p.dir.GapAfter > 0 || !p.dir.FIN {
			m.Missing += min(p.dir.GapAfter, b.Left())
			if m.Why == 0 {
				m.Why = p.ending()
			}
		}
		return false
	}
	gap := p.dir.Runs[p.run+1].GapBefore
	if m.Why == 0 {
		m.Why = WhyGap
	}
	switch {
	case f.Kind == http1.UntilClose:
	case gap < 0, f.Kind != http1.Length:
		return false
	case b.Left() < gap: // the body ends somewhere in the gap
		m.Missing += b.Left()
		return false
	default:
		b.Skip(gap)
	}
	m.Missing += max(gap, 0)
	p.run, p.at = p.run+1, 0
	if f.Kind == http1.Length && b.Done() {
		return false
	}
	return true
}

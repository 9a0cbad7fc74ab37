package tlsrecord

import (
	"encoding/binary"
)

// Content types of records (RFC 8446, section 5.1).
const (
	typeChange    = 20
	typeAlert     = 21
	typeHandshake = 22
	typeData      = 23
)

const (
	// headerLen is the length of a record's header, in bytes.
	headerLen = 5
	// maxRecord is the greatest length in a header: that of TLS 1.2.
	maxRecord = 1<<14 + 2048
	// minRecord is the length of the shortest record that is encrypted.
	minRecord = headerLen + 17
	// maxSkipped bounds the records that may be missing before one.
	maxSkipped = 1 << 16
)

// plausible reports whether a record may begin with these bytes, at least as many as a header has.
func plausible(b []byte) bool {
	return b[0] >= typeChange && b[0] <= typeData && b[1] == 3 && b[2] <= 4 && lengthOf(b) <= maxRecord
}

// lengthOf is the length in a header.
func lengthOf(header []byte) int { return int(binary.BigEndian.Uint16(header[3:])) }

// recordReader is one direction of a connection: how its bytes are cut into records, and what opens
// those.
type recordReader struct {
	buf  []byte // of records that are not whole
	drop int64  // bytes of a record that has a gap in it, and that still come

	encrypted bool // in TLS 1.2: there was a change of cipher specs
	messages  messages

	suite  *suite
	now    protection
	seq    uint64 // of the next record
	secret []byte // from which the next keys come, in TLS 1.3
	later  protection
	after  []byte // the secret of later

	searching bool  // bytes are missing: where a record begins is not known
	missing   int64 // bytes in which records may be missing
	skipped   int   // records that are missing for certain, since the last one
	gap       int64 // bytes of content that are missing, -1 if their number is not known
	failed    int   // records that could not be opened
}

// keyed gives a direction of TLS 1.3 its keys: those of the handshake, which may be nil, and those
// after it.
func (d *recordReader) keyed(s *suite, handshake, traffic []byte) {
	d.suite = s
	d.now, d.later, d.after = s.protect13(handshake), s.protect13(traffic), traffic
}

// update changes the keys for the next ones.
func (d *recordReader) update() {
	if d.secret != nil {
		d.secret, d.seq = d.upcoming(), 0
		d.now = d.suite.protect13(d.secret)
	}
}

// upcoming is the secret after the current one (RFC 8446, section 7.2).
func (d *recordReader) upcoming() []byte {
	return d.suite.expandLabel(d.secret, "traffic upd", len(d.secret))
}

// add takes bytes.
func (d *recordReader) add(b []byte) {
	n := min(d.drop, int64(len(b)))
	d.drop -= n
	if b = b[n:]; len(d.buf) > 0 {
		d.buf = append(d.buf, b...)
		return
	}
	d.buf = b[:len(b):len(b)] // which is not written to
}

// next takes the next record away; nil: it is not whole. false: none begins there.
func (d *recordReader) next() (record []byte, ok bool) {
	if len(d.buf) < headerLen {
		return nil, true
	}
	if !plausible(d.buf) {
		return nil, false
	}
	n := headerLen + lengthOf(d.buf)
	if len(d.buf) < n {
		return nil, true
	}
	record, d.buf = d.buf[:n:n], d.buf[n:]
	return record, true
}

// miss notes that bytes are missing. Where they are all of one record whose header is there, the
// next one begins where that says.
func (d *recordReader) miss(n int64) {
	have := int64(len(d.buf))
	switch {
	case d.searching:
		d.missing += n + have
	case n <= d.drop:
		d.drop -= n
	case d.drop > 0:
		d.missing += n - d.drop
		d.drop, d.searching, d.gap = 0, true, -1
	case have >= headerLen:
		length := lengthOf(d.buf)
		d.lose(length)
		rest := headerLen + int64(length) - have
		if n > rest {
			d.missing += n - rest
			d.searching, d.gap = true, -1
			break
		}
		d.drop = rest - n
	default:
		d.missing += n + have
		d.searching, d.gap = true, -1
	}
	d.buf = nil
}

// lose notes that a record of a length is missing; 0: of any.
func (d *recordReader) lose(length int) {
	d.skipped++
	over := 0
	if d.now != nil {
		over = d.now.overhead()
	}
	switch {
	case length == 0 || over == 0 || d.later != nil:
		d.gap = -1
	case d.gap >= 0:
		d.gap += int64(max(0, length-over))
	}
}

// pass leaves out bytes that are no record.
func (d *recordReader) pass(n int) {
	d.missing += int64(n)
	d.buf = d.buf[n:]
}

// found ends a search: a record of so many bytes was there.
func (d *recordReader) found(n int) {
	d.searching, d.missing = false, 0
	d.buf = d.buf[n:]
}

// open opens a record, before which so many more bytes may be missing. Where records are missing it
// finds out how many, by which number opens it; effort is how many bytes that may cost.
func (d *recordReader) open(record []byte, passed int64, effort *int) (content []byte, kind byte, ok bool) {
	most := min(uint64(d.skipped)+uint64(d.missing+passed+minRecord-1)/minRecord, maxSkipped)
	try := func(p protection, from uint64) (uint64, bool) {
		for seq := from; p != nil && *effort >= 0; seq++ {
			if content, kind, ok = p.open(seq, record); ok {
				return seq, true
			}
			if *effort -= len(record); seq-from >= most {
				break
			}
		}
		return 0, false
	}
	if seq, opened := try(d.now, d.seq); opened {
		d.seq = seq + 1
	} else if seq, opened := try(d.later, 0); opened {
		d.now, d.secret, d.seq = d.later, d.after, seq+1
		d.later = nil
	} else if d.secret != nil && most > 0 {
		secret := d.upcoming()
		now := d.suite.protect13(secret)
		seq, opened := try(now, 0)
		if !opened {
			return nil, 0, false
		}
		d.now, d.secret, d.seq = now, secret, seq+1
	} else {
		return nil, 0, false
	}
	d.skipped = 0
	return content, kind, true
}

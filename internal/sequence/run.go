package sequence

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"errors"

	"github.com/hhfr/hhfr/internal/bin"
	"github.com/hhfr/hhfr/pkg/streamer"
)

// SentRun identifies what a program sends in one go, over however many processes and sequences that
// takes: so many messages, with a digest of them in their order.
type SentRun struct {
	// ID is random. Two runs with the same messages differ in it.
	ID [16]byte
	// Messages is how many there are.
	Messages uint64
	// First is the digest of the first message alone, Digest that of all. Both are zero without
	// one.
	First, Digest [sha256.Size]byte
}

// NewRun begins a run.
func NewRun() (r SentRun) {
	rand.Read(r.ID[:])
	return r
}

// Add counts the next message. Whether a reply is wanted is part of it, as head and body are.
func (r *SentRun) Add(m Stored, wanted bool) { r.add(encode(m, streamer.Place{Wanted: wanted})) }

// add counts a message as the engine carries it: that encoding tells different messages apart.
func (r *SentRun) add(m payload) {
	h := sha256.New()
	h.Write(r.Digest[:])
	h.Write(unnamed(m))
	h.Sum(r.Digest[:0])
	if r.Messages++; r.Messages == 1 {
		r.First = r.Digest
	}
}

// Run gives the run that the sequence keeps track of, with all that it has accepted; known is false
// if it keeps track of none, as one whose state an older version has stored.
func (q *Sequence) Run() (run SentRun, known bool) {
	asked := make(chan struct{})
	if q.do(func() { run, known = q.runs.whole(), q.runs.on; close(asked) }) {
		select {
		case <-asked:
			return run, known
		case <-q.ended:
		}
	} else {
		<-q.ended
	}
	return q.runs.whole(), q.runs.on // nobody else looks at it any more
}

// BeginRun makes what is sent from now on a part of another run. The store has it with the next
// message that is accepted: until then the run has not begun.
func (q *Sequence) BeginRun(r SentRun) {
	q.do(func() { q.runs.begin(r, q.engine.Last()) })
}

// runVersion is the first byte of a stored run.
const runVersion = 1

// tracker follows the run of a sequence: which of its messages the store will have, whatever
// happens. A message that is not done lies in the stored state, so it is counted when it leaves
// that; the digest of a run then follows from what is stored together, as one value.
type tracker struct {
	on      bool
	run     SentRun     // up to the message numbered at, all of which are settled
	at      uint64      // those up to there which are not in run are of other runs
	pending [][]payload // messages numbered at+1 and so on, accepted and not settled
}

// payload is a message as the engine carries it. One that is sent again in another sequence has
// those with it that came behind it and were settled before: they keep their place in the run.
type payload = []byte

// begin makes what is accepted behind last another run, or another part of one.
func (t *tracker) begin(r SentRun, last uint64) { *t = tracker{on: true, run: r, at: last} }

// accepted takes the message with the next number, and those behind it that need none any more.
func (t *tracker) accepted(message payload, behind ...payload) {
	if t.on {
		t.pending = append(t.pending, append([]payload{message}, behind...))
	}
}

// settled counts the messages up to a number: they are done, or of unknown fate and told to be so.
func (t *tracker) settled(number uint64) {
	for ; t.at < number && len(t.pending) > 0; t.at++ {
		for _, m := range t.pending[0] {
			t.run.add(m)
		}
		t.pending[0] = nil
		t.pending = t.pending[1:]
	}
}

// drop forgets messages from a number on: they are not part of the run, or will be accepted anew.
func (t *tracker) drop(number uint64) {
	if number <= t.at {
		t.pending = nil
	} else if keep := number - t.at - 1; keep < uint64(len(t.pending)) {
		t.pending = t.pending[:keep]
	}
}

// whole is the run with all that is accepted.
func (t *tracker) whole() SentRun {
	r := t.run
	for _, number := range t.pending {
		for _, m := range number {
			r.add(m)
		}
	}
	return r
}

// append writes what is stored of a run.
func (t *tracker) append(dst []byte) []byte {
	dst = append(dst, runVersion)
	dst = binary.AppendUvarint(dst, t.at)
	dst = binary.AppendUvarint(dst, t.run.Messages)
	dst = append(dst, t.run.ID[:]...)
	dst = append(dst, t.run.First[:]...)
	return append(dst, t.run.Digest[:]...)
}

// restore reads it. What of the run is not settled is accepted again, as the state has it.
func (t *tracker) restore(stored []byte) error {
	r := bin.NewCursor(stored, 0)
	if version := r.U8(); r.Err() == nil && version != runVersion {
		r.Fail(errRun)
	}
	*t = tracker{on: true, at: r.Uvarint()}
	t.run.Messages = r.Uvarint()
	copy(t.run.ID[:], r.Take(len(t.run.ID)))
	copy(t.run.First[:], r.Take(len(t.run.First)))
	copy(t.run.Digest[:], r.Take(len(t.run.Digest)))
	if r.Err() == nil && r.Len() > 0 {
		r.Fail(errRun)
	}
	return r.Err()
}

var errRun = errors.New("a run in a form that this version does not know")

package negotiate

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/hhfr/hhfr/internal/xmlns"
	"github.com/hhfr/hhfr/pkg/soap"
)

// Run is what the entry knows of a run: so many messages of a program, over however many processes
// and sequences.
type Run struct {
	// ID is random. Two runs with the same messages differ in it.
	ID [16]byte
	// Messages is how many there are.
	Messages uint64
	// First is the digest of the first message alone, Digest that of all. Both are zero without
	// one.
	First, Digest [sha256.Size]byte
}

// Outbox is the entry in the store, as XML. The current run is stored with the state of the
// sequence.
type Outbox struct {
	Assurance string // URI
	Sequence  string // URI
	// Joined: a responder has taken the sequence, and knows it from then on.
	Joined bool
	// Ended is the run that was completed last, and at is when; zero: none.
	Ended [16]byte
	At    time.Time
	// Behind is the run after which another one has begun, of which nothing was accepted; zero:
	// none.
	Behind [16]byte
	// Interrupted are runs before the current one that were not completed, as far as each came;
	// oldest first.
	Interrupted []Run
}

const outboxName = "Outbox"

// StateURI returns the URI of the state of the sequence.
func (e *Outbox) StateURI() string { return e.Sequence + ":initiator" }

// Marshal writes the entry as XML.
func (e *Outbox) Marshal() ([]byte, error) {
	w := documentWriter{ns: xmlns.HHFRContext}
	w.texts("Assurance", e.Assurance)
	w.sequence(e.Sequence, stateName(e.Joined))
	if e.Ended != [16]byte{} {
		w.children = append(w.children, soap.Element{
			Name: w.name("Ended"), Text: hex.EncodeToString(e.Ended[:]),
			Attrs: []soap.Attr{{Name: "at", Value: e.At.UTC().Format(time.RFC3339)}},
		})
	}
	if e.Behind != [16]byte{} {
		w.texts("Behind", hex.EncodeToString(e.Behind[:]))
	}
	for _, r := range e.Interrupted {
		w.children = append(w.children, soap.Element{
			Name: w.name("Interrupted"), Text: hex.EncodeToString(r.ID[:]),
			Attrs: []soap.Attr{
				{Name: "messages", Value: strconv.FormatUint(r.Messages, 10)},
				{Name: "first", Value: hex.EncodeToString(r.First[:])},
				{Name: "digest", Value: hex.EncodeToString(r.Digest[:])},
			},
		})
	}
	if w.err != nil {
		return nil, AsMalformed(w.err)
	}
	el := w.element(outboxName)
	return soap.BuildElement(&el)
}

// ParseOutbox reads an entry. Errors: Malformed.
func ParseOutbox(data []byte) (e Outbox, err error) {
	el, err := soap.ParseElement(data, soap.Limits{MaxBytes: maxContext, MaxDepth: 4, MaxElements: 8 + maxInterrupted})
	if err != nil {
		return e, AsMalformed(fmt.Errorf("outbox: %w", err))
	}
	r := documentReader{el: el, asked: map[string]bool{}}
	var state string
	e.Assurance = r.one("Assurance")
	e.Sequence, state = r.sequence()
	e.Joined = state == sequenceKnown
	for _, c := range r.all("Ended", 1) {
		r.digits("Ended", c.Text, e.Ended[:])
		if e.At, err = time.Parse(time.RFC3339, c.Attr("at")); err != nil {
			r.fail("Ended: %w", err)
		}
	}
	for _, c := range r.all("Behind", 1) {
		r.digits("Behind", c.Text, e.Behind[:])
	}
	for _, c := range r.all("Interrupted", maxInterrupted) {
		var run Run
		r.digits("Interrupted", c.Text, run.ID[:])
		r.digits("first", c.Attr("first"), run.First[:])
		r.digits("digest", c.Attr("digest"), run.Digest[:])
		if run.Messages, err = strconv.ParseUint(c.Attr("messages"), 10, 64); err != nil {
			r.fail("Interrupted: %w", err)
		}
		e.Interrupted = append(e.Interrupted, run)
	}
	if r.err != nil || e.Sequence == "" {
		return e, AsMalformed(fmt.Errorf("outbox: %w", errors.Join(r.err, ErrNoSequence)))
	}
	return e, nil
}

// digits reads hexadecimal digits that fill to.
func (r *documentReader) digits(local, text string, to []byte) {
	b, err := hex.DecodeString(text)
	if err != nil || len(b) != len(to) {
		r.fail("%s is not %d hexadecimal digits", local, 2*len(to))
	}
	copy(to, b)
}

// Remember adds a run to those that were interrupted, and replaces what is known of it. It returns
// the run that there is no space for any more.
func (e *Outbox) Remember(run Run) (forgotten *Run) {
	e.Interrupted = slices.DeleteFunc(slices.Clone(e.Interrupted), func(r Run) bool { return r.ID == run.ID })
	e.Interrupted = append(e.Interrupted, run)
	if len(e.Interrupted) > maxInterrupted {
		forgotten = &e.Interrupted[0]
		e.Interrupted = e.Interrupted[1:]
	}
	return forgotten
}

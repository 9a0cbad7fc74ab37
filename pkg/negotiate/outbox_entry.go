package negotiate

import (
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/hhfr/hhfr/internal/xmlns"
	"github.com/hhfr/hhfr/pkg/soap"
	"github.com/hhfr/hhfr/pkg/streamer/sequence"
)

// outboxEntry is what lies in the store, as XML. The run at hand lies with the state of the
// sequence.
type outboxEntry struct {
	assurance string // URI
	sequence  string // URI
	// joined: a responder has taken the sequence, and knows it from then on.
	joined bool
	// ended is the run that came to its end last, and at when; zero: none.
	ended [16]byte
	at    time.Time
	// behind is the run that another one has begun behind, of which nothing was accepted; zero:
	// none.
	behind [16]byte
	// interrupted are runs before the one at hand that did not come to their end, as far as each
	// came; oldest first.
	interrupted []sequence.Run
}

const outboxName = "Outbox"

// stateURI is where the state of the sequence lies.
func (e *outboxEntry) stateURI() string { return e.sequence + ":initiator" }

func (e *outboxEntry) marshal() ([]byte, error) {
	w := documentWriter{ns: xmlns.HHFRContext}
	w.texts("Assurance", e.assurance)
	w.sequence(e.sequence, stateName(e.joined))
	if e.ended != [16]byte{} {
		w.children = append(w.children, soap.Element{
			Name: w.name("Ended"), Text: hex.EncodeToString(e.ended[:]),
			Attrs: []soap.Attr{{Name: "at", Value: e.at.UTC().Format(time.RFC3339)}},
		})
	}
	if e.behind != [16]byte{} {
		w.texts("Behind", hex.EncodeToString(e.behind[:]))
	}
	for _, r := range e.interrupted {
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
		return nil, malformed(w.err)
	}
	el := w.element(outboxName)
	return soap.BuildElement(&el)
}

func parseOutbox(data []byte) (e outboxEntry, err error) {
	el, err := soap.ParseElement(data, soap.Limits{MaxBytes: maxContext, MaxDepth: 4, MaxElements: 8 + maxInterrupted})
	if err != nil {
		return e, malformed(fmt.Errorf("outbox: %w", err))
	}
	r := documentReader{el: el, asked: map[string]bool{}}
	var state string
	e.assurance = r.one("Assurance")
	e.sequence, state = r.sequence()
	e.joined = state == sequenceKnown
	for _, c := range r.all("Ended", 1) {
		r.digits("Ended", c.Text, e.ended[:])
		if e.at, err = time.Parse(time.RFC3339, c.Attr("at")); err != nil {
			r.fail("Ended: %w", err)
		}
	}
	for _, c := range r.all("Behind", 1) {
		r.digits("Behind", c.Text, e.behind[:])
	}
	for _, c := range r.all("Interrupted", maxInterrupted) {
		var run sequence.Run
		r.digits("Interrupted", c.Text, run.ID[:])
		r.digits("first", c.Attr("first"), run.First[:])
		r.digits("digest", c.Attr("digest"), run.Digest[:])
		if run.Messages, err = strconv.ParseUint(c.Attr("messages"), 10, 64); err != nil {
			r.fail("Interrupted: %w", err)
		}
		e.interrupted = append(e.interrupted, run)
	}
	if r.err != nil || e.sequence == "" {
		return e, malformed(fmt.Errorf("outbox: %w", errors.Join(r.err, errNoSequence)))
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

// remember puts a run among those that were interrupted, in the place of what is known of it. It
// reports the one that there is no room for any more.
func (e *outboxEntry) remember(run sequence.Run) (forgotten *sequence.Run) {
	e.interrupted = slices.DeleteFunc(slices.Clone(e.interrupted), func(r sequence.Run) bool { return r.ID == run.ID })
	e.interrupted = append(e.interrupted, run)
	if len(e.interrupted) > maxInterrupted {
		forgotten = &e.interrupted[0]
		e.interrupted = e.interrupted[1:]
	}
	return forgotten
}

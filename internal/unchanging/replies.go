package unchanging

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/hhfr/hhfr/pkg/ctxstore"
	"github.com/hhfr/hhfr/pkg/soap"
)

// In replies of plain SOAP the responder refers to what the request names (docs/negotiation.md,
// section 3.3). The initiator names only what it has put into the store and holds in memory: so it
// makes each reply whole without a store, and loses none.

const (
	// maxTaken is how many references a request names: each costs bytes in all requests.
	maxTaken = 4
	// takenFor is how many replies in a row may lack a block that requests name.
	takenFor = 16
	// maxUnreferred is how many replies in a row, and for how long, may have blocks that their
	// requests named; after that requests name none for wholeFor: the responder does not know the
	// field, or has no store.
	maxUnreferred, unreferredFor, wholeFor = 8, 2 * fetchTimeout, 30 * time.Second
)

// replyCounts is what an initiator knows of the replies of a session.
type replyCounts struct {
	seen       uint64    // how many there were
	unreferred int       // how many in a row had blocks that their requests had named
	since      time.Time // when the first of these came
	whole      time.Time // no request names any before
}

// Taken are the references that one request takes in its reply.
type Taken struct {
	r     *Referrer
	texts map[string]string // by reference
	list  []string          // the references, in the order of the field
}

// Take returns what a request names; nil: nothing, and its reply is whole.
func (r *Referrer) Take() *Taken {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.forbidden || r.cfg.Clock.Now().Before(r.replies.whole) {
		return nil
	}
	var texts []string
	for text, t := range r.stored {
		if t.there && t.reply > 0 && r.replies.seen-t.reply < takenFor {
			texts = append(texts, text)
		}
	}
	if texts == nil {
		return nil
	}
	slices.SortFunc(texts, func(a, b string) int {
		x, y := r.stored[a], r.stored[b]
		return cmp.Or(cmp.Compare(y.reply, x.reply), cmp.Compare(len(b), len(a)), cmp.Compare(x.uri, y.uri))
	})
	t := &Taken{r: r, texts: map[string]string{}}
	for _, text := range texts[:min(len(texts), maxTaken)] {
		reference := r.keys.short(r.stored[text].uri)
		t.texts[reference] = text
		t.list = append(t.list, reference)
	}
	return t
}

// Field returns the value of [negotiate.FragmentsField].
func (t *Taken) Field() string {
	return strings.Join(t.list, ", ")
}

// taken returns the references of a field; what is none is left out, as is what is beyond the
// limit.
func taken(field string) (list []string) {
	for item := range strings.SplitSeq(field, ",") {
		reference := strings.TrimSpace(item)
		if parseShort(reference) == nil {
			reference = ctxstore.FragmentPrefix + reference
		}
		if scopeOf(reference) == "" || slices.Contains(list, reference) {
			continue
		}
		if list = append(list, reference); len(list) == maxTaken {
			break
		}
	}
	return list
}

// RestoreReply returns a reply with its fragments, and how many they are; 0: it has none, and stays
// as it is. body needs no more than the beginning of the reply, up to its Body. t is nil if the
// request has named none. An error says that the reply has a reference of the session that its
// request has not named, which no responder may send.
func (r *Referrer) RestoreReply(t *Taken, body []byte) (whole []byte, fragments int, err error) {
	if Refers(body) {
		h, _ := headerOf(body)
		at := 0
		for _, b := range h.blocks {
			if scope := scopeOf(b.reference); scope == "" || !strings.HasPrefix(r.keys.scope, scope) {
				continue // it is none, or one of others, who take it for what it is
			}
			text, named := "", false
			if t != nil {
				text, named = t.texts[b.reference]
			}
			if !named {
				return nil, 0, fmt.Errorf("the reply refers to %.120q, which its request has not named", b.reference)
			}
			whole = append(append(whole, body[at:b.from]...), text...)
			at, fragments = b.to, fragments+1
		}
		if fragments > 0 {
			whole = append(whole, body[at:]...)
		}
	}
	if fragments == 0 {
		r.sawReply(t, body, 0)
		return nil, 0, nil
	}
	r.sawReply(t, whole, fragments)
	return whole, fragments, nil
}

// sawReply counts the blocks of a reply. Those that recur go to the store, and requests name them
// once they are there.
func (r *Referrer) sawReply(t *Taken, whole []byte, fragments int) {
	h, ok := headerOf(whole)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.replies.seen++
	if !ok || slices.ContainsFunc(h.blocks, func(b foundBlock) bool { return b.reference != "" }) {
		return
	}
	unreferred := false
	cost := len(referringBlock(&h, "")) + 2*shortLen // of a reference, and of naming it
	for _, run := range r.runs(whole, h.blocks) {
		if run.to-run.from <= cost {
			continue
		}
		for _, part := range r.there(whole, run) {
			lent := r.stored[string(whole[part.from:part.to])]
			if part.to-part.from > cost {
				lent.reply = r.replies.seen
				unreferred = unreferred || t != nil && t.texts[r.keys.short(lent.uri)] != ""
			}
		}
	}
	now := r.cfg.Clock.Now()
	switch {
	case fragments > 0:
		r.replies.unreferred = 0
	case unreferred:
		if r.replies.unreferred++; r.replies.unreferred == 1 {
			r.replies.since = now
		} else if r.replies.unreferred >= maxUnreferred && now.Sub(r.replies.since) >= unreferredFor {
			r.replies.unreferred, r.replies.whole = 0, now.Add(wholeFor)
		}
	}
}

// Recurs reports whether any header block may go to the store in mid-session, or was agreed on.
func (r *Referrer) Recurs() bool { return len(r.cfg.Headers)+len(r.cfg.Blocks) > 0 }

// Reply is what the sender of a reply knows of the request's field.
type Reply struct {
	r    *Restorer
	list []string // references
}

// Reply returns what a reply may refer to, by the value of [negotiate.FragmentsField]; nil:
// nothing. What is not known yet is read from the store beside the reply, by functions that start
// runs, or refuses to. Nothing waits for that: without it the reply is whole.
func (r *Restorer) Reply(field string, start func(read func(ctx context.Context)) bool) *Reply {
	list := taken(field)
	if list == nil {
		return nil
	}
	for _, reference := range list {
		if r.reads(reference) && !start(func(ctx context.Context) { r.read(ctx, reference) }) {
			r.hasRead(reference)
		}
	}
	return &Reply{r, list}
}

// reads reports whether a fragment is to be read now, and records that it is.
func (r *Restorer) reads(reference string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, known := r.texts[reference]; known || r.reading[reference] || len(r.reading) >= maxReading ||
		r.cfg.Clock.Now().Before(r.pause) {
		return false
	}
	r.reading[reference] = true
	return true
}

func (r *Restorer) hasRead(reference string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.reading, reference)
}

// maxReading is how many fragments for replies are read at a time.
const maxReading = 16

// read reads a fragment for replies.
func (r *Restorer) read(ctx context.Context, reference string) {
	defer r.hasRead(reference)
	if _, err := r.text(ctx, reference); err != nil {
		r.cfg.Log.Debug("replies do not refer to a fragment", "fragment", reference, "err", err)
	}
}

// Refer returns a reply with references, and how many; 0: it is to travel as it is. body needs no
// more than the beginning of the reply, up to its Body.
func (a *Reply) Refer(body []byte) (by []byte, references int) {
	h, ok := headerOf(body)
	if !ok || slices.ContainsFunc(h.blocks, func(b foundBlock) bool { return b.reference != "" }) {
		return nil, 0
	}
	at, texts := 0, a.texts()
	for i := 0; i < len(h.blocks); i++ {
		reference, last := texts.at(body, h.blocks[i:])
		if reference == "" {
			continue
		}
		from, to := h.blocks[i].from, h.blocks[i+last].to
		block := referringBlock(&h, reference)
		if i += last; len(block) >= to-from {
			continue
		}
		by = append(append(by, body[at:from]...), block...)
		at, references = to, references+1
	}
	if references == 0 {
		return nil, 0
	}
	return append(by, body[at:]...), references
}

// knownTexts are texts by their references.
type knownTexts map[string]string

// texts returns those that are known by now.
func (a *Reply) texts() knownTexts {
	a.r.mu.Lock()
	defer a.r.mu.Unlock()
	known := knownTexts{}
	for _, reference := range a.list {
		if text, ok := a.r.texts[reference]; ok {
			known[reference] = text
		}
	}
	return known
}

// at returns the longest text that stands where the first of these blocks begins, by its reference,
// and the index of the block with which it ends; empty: there is none.
func (k knownTexts) at(body []byte, blocks []foundBlock) (reference string, last int) {
	longest := 0
	for candidate, text := range k {
		end := blocks[0].from + len(text)
		if len(text) <= longest || !bytes.HasPrefix(body[blocks[0].from:], []byte(text)) {
			continue
		}
		i := slices.IndexFunc(blocks, func(b foundBlock) bool { return b.stays || b.to >= end })
		if i >= 0 && blocks[i].to == end && !blocks[i].stays {
			reference, last, longest = candidate, i, len(text)
		}
	}
	return reference, last
}

// Beginning reads a body, of which start was read already, until what stands before its Body is
// there, and returns all that was read, with the error that ended it.
func Beginning(start []byte, err error, body io.Reader) ([]byte, error) {
	const chunk = 4 << 10
	for err == nil && !Begun(start) {
		var n int
		start = slices.Grow(start, chunk)
		n, err = body.Read(start[len(start) : len(start)+chunk])
		start = start[:len(start)+n]
	}
	return start, err
}

// Begun reports whether all that stands before the Body of a message is in these bytes, its first
// ones, or more of them would show nothing: they are many, or no XML.
func Begun(start []byte) bool {
	const mark = "\xEF\xBB\xBF"
	text := bytes.TrimLeft(start, " \t\r\n")
	if len(text) > 0 && text[0] != '<' && text[0] != mark[0] {
		return true
	}
	return len(start) >= headerWindow || soap.Recognize(start).Complete
}

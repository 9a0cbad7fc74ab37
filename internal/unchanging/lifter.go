package unchanging

import (
	"io"
	"slices"
	"sync"
	"sync/atomic"
)

// Lifter are the header blocks of a stream, as they are taken out of bodies and put back: those
// that were agreed on with its session, and more in mid-session. Its methods are safe for
// concurrent use; its fields are set before it is used.
type Lifter struct {
	Texts []string
	Taken *atomic.Int64 // counts blocks taken out; nil: they are not counted
	// Look, if given, is shown the beginnings of bodies, of either direction, as the ends of the
	// session see them. It must not keep them.
	Look func(beginning []byte)

	mu           sync.Mutex
	known, taken atomic.Pointer[[]string] // further ones: those put back, and those taken out
}

// Outgoing returns a writer that takes the blocks out of a body, and passes it to another writer.
// Close writes the rest.
func (u *Lifter) Outgoing(to io.Writer) io.WriteCloser {
	return &taker{to: to, rule: taking{unused: u.with(&u.taken), taken: u.Taken}, look: u.Look}
}

// Incoming returns a reader of a body that puts the blocks back. Errors: Malformed.
func (u *Lifter) Incoming(body io.ReadCloser) io.ReadCloser {
	return &putter{from: body, rule: putting{Texts: u.with(&u.known)}, look: u.Look}
}

// with returns a list of the blocks.
func (u *Lifter) with(further *atomic.Pointer[[]string]) []string {
	if more := further.Load(); more != nil {
		return slices.Concat(u.Texts, *more)
	}
	return slices.Clone(u.Texts)
}

// Know has blocks put back in bodies that come from now on: the peer may take them out. false: they
// are more than one session may have.
func (u *Lifter) Know(blocks []string) bool { return u.add(&u.known, blocks) }

// Take has blocks taken out of bodies that are sent from now on: the peer knows them. Its result is
// that of Know.
func (u *Lifter) Take(blocks []string) bool { return u.add(&u.taken, blocks) }

func (u *Lifter) add(further *atomic.Pointer[[]string], blocks []string) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	all := u.with(further)
	for _, b := range blocks {
		if !slices.Contains(all, b) {
			all = append(all, b)
		}
	}
	more, size := all[len(u.Texts):], 0
	for _, b := range more {
		size += len(b)
	}
	if len(more) > maxLent || size > maxLentSize {
		return false
	}
	further.Store(&more)
	return true
}

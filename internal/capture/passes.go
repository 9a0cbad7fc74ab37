package capture

import "io"

// passes is what the pass over the inputs is for, of several.
type passes struct {
	surveying bool // messages are not given: this pass collects what must be known before
	twice     bool // there was such a pass, or there need not be one
	blind     bool // there was a check that could not be applied
	files     bool // the inputs are the bytes of streams, not captures
	beginning bool // only the beginnings of long inputs are read
	past      bool // in that pass, the end of a beginning was read: what follows is not what it seems
	packets   int  // of the beginnings
	once      bool // messages are given by the first pass, as long as nothing needs another one
	needed    bool // something does
	told      int  // events of this pass
	before    int  // events that a pass before gave
}

// need says that something in the input can be told only when all of it was seen: keys, what
// references stand for, and what a stream says later of its messages.
func (p *passes) need() { p.needed = true }

// beginningOf is the beginning of an input; past is set at its end.
type beginningOf struct {
	io.LimitedReader
	past *bool
}

// Read implements [io.Reader].
func (b *beginningOf) Read(p []byte) (int, error) {
	n, err := b.LimitedReader.Read(p)
	*b.past = *b.past || b.N <= 0 || err != nil
	return n, err
}

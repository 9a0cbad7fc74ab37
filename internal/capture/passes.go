package capture

// passes is what the pass over the inputs is for, of several.
type passes struct {
	surveying bool // messages are not given: this pass collects what must be known before
	twice     bool // there was such a pass, or there need not be one
	blind     bool // there was a check that could not be applied
	files     bool // the inputs are the bytes of streams, not captures
	beginning bool // only the beginnings of long inputs are read
	once      bool // messages are given by the first pass, as long as nothing needs another one
	needed    bool // something does
	told      int  // events of this pass
	before    int  // events that a pass before gave
}

// need says that something in the input can be told only when all of it was seen: what a stream
// says of its messages, keys, and what references stand for.
func (p *passes) need() { p.needed = true }

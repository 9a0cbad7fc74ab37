package recall

// packSaid leaves what was said as it is: a page in a browser forgets all when it is closed, and is
// smaller without the compressor.
func (w *History) packSaid() {}

// unpackSaid has nothing to do.
func (w *History) unpackSaid() {}

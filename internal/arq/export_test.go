package arq

// Last is the number of the last unit that was accepted.
func (e *Endpoint) Last() uint64 { return e.out.Last }

package arq

// Last is the number of the last unit that was accepted.
func (e *Engine) Last() uint64 { return e.out.Last }

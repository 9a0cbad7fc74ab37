package streamer

// writeNow writes what is queued in the goroutine of who queued it, who waits for what comes of it
// anyway: one batch, as far as the connection takes it at once. The rest is for the writer's own
// goroutine, and so is all of it if that runs.
func (w *streamWriter) writeNow() {
	if !w.state.CompareAndSwap(writerSleeps, writerRuns) {
		w.wake(false)
		return
	}
	w.enc.Wake()
	if w.tryBatch() {
		w.enc.Sleep()
		w.watch()
		if w.state.CompareAndSwap(writerRuns, writerSleeps) {
			return
		}
	}
	go w.start()
}

// tryBatch writes a batch without waiting, and reports whether that was all there is.
func (w *streamWriter) tryBatch() (all bool) {
	w.late = true
	w.look()
	batch := w.batch()
	if len(batch) > 0 {
		w.sent = w.s.conn.TryWrite(batch)
	}
	if w.sent < len(batch) || w.last {
		return false
	}
	full := w.isFull()
	w.left()
	return !full
}

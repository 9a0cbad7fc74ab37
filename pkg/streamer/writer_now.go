package streamer

// writeNow writes what is queued in the goroutine of who queued it, who waits for what comes of it
// anyway: one batch, as far as the connection takes it at once. The rest is for the writer's own
// goroutine, and so is all of it if that runs.
func (w *streamWriter) writeNow() {
	if !w.state.CompareAndSwap(writerSleeps, writerRuns) {
		w.wake(false)
		return
	}
	if w.tryAll() && w.state.CompareAndSwap(writerRuns, writerSleeps) {
		return
	}
	go w.start()
}

// tryAll writes a batch without waiting, and reports whether that was all there is.
func (w *streamWriter) tryAll() (all bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.enc.Wake()
	if all = w.tryBatch(); all {
		w.enc.Sleep()
		w.watch()
	}
	return all
}

// take encodes a message that is one piece, in the goroutine of its sender, where it need not
// wait: nobody else is at that, nothing was queued before it, and the batch is not full. Who
// sends it then has the batch written.
func (w *streamWriter) take(out *outbound, p *outboundPiece) bool {
	if !w.mu.TryLock() {
		return false
	}
	defer w.mu.Unlock()
	w.enc.Wake()
	if w.isFull() && !w.stuck {
		w.tryBatch()
	}
	if w.isFull() || w.last || w.s.ending.hasFailed() || !w.s.queue.pass(out, p, w.asItIs) {
		return false
	}
	w.look()
	w.data(out, p)
	return true
}

// tryBatch writes a batch without waiting, and reports whether that was all there is.
func (w *streamWriter) tryBatch() (all bool) {
	w.lookAnew()
	batch := w.batch()
	if len(batch) > 0 {
		w.sent += w.s.conn.TryWrite(batch[w.sent:])
	}
	if w.stuck = w.sent < len(batch); w.stuck || w.last {
		return false
	}
	full := w.isFull()
	w.left()
	return !full
}

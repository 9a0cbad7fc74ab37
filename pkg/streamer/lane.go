package streamer

// Lane is the exchanges of one client or principal on a stream (docs/wire-format.md, section 5).
// Its methods may be called concurrently.
type Lane struct {
	s      *Stream
	out    outLane
	placed bool // messages of a sequence go here; under exchanges.mu
}

// Number is the lane's number.
func (l *Lane) Number() uint64 { return l.out.number }

// has reports whether the lane has had an exchange of this number.
func (l *Lane) has(exchange uint64) bool {
	q := l.s.queue
	q.mu.Lock()
	defer q.mu.Unlock()
	return exchange > 0 && exchange <= l.out.last
}

// Restart gives the lane to another client or principal: nothing that is sent on it from now on
// builds on what was sent before, so that lengths tell the one nothing of the other. Each end
// restarts what it sends itself.
func (l *Lane) Restart() {
	l.s.heads[l.out.number%lastHeads].clients.Add(1)
	l.s.coder.Restart(l.out.number)
	push(l.s.queue, &l.s.queue.ring, turn{restart: &l.out})
}

package proxy

import "sync"

// callProgress is how far the calls of a connection of a client have come, and whether it takes
// further ones. Its zero value has had none. All methods are safe for concurrent use.
type callProgress struct {
	mu       sync.Mutex
	before   uint64 // how many connections the far end knows the lane to have had before
	begun    uint64 // number of calls begun on the lane
	finished uint64 // number of calls whose replies are complete
	closing  bool   // no further call is begun
	replying bool   // what is written is the reply to the last call that has begun
	ends     bool   // the connection ends once no call is in progress
}

// begin counts a call; false: the idle connection is about to be closed.
func (s *callProgress) begin() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closing {
		return false
	}
	s.begun++
	s.replying = false
	return true
}

// reply notes that the reply to a call begins.
func (s *callProgress) reply() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.replying = s.begun == s.finished+1
}

// finish notes that the reply to a call is complete; ends: the connection is to end then.
func (s *callProgress) finish() (ends bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.finished++
	return s.ends
}

// open is the number of calls in progress.
func (s *callProgress) open() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.begun - s.finished
}

// calls is the number of calls that were begun.
func (s *callProgress) calls() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.begun
}

// follow notes that the far end knows of one more connection that the lane had before.
func (s *callProgress) follow() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.before++
}

// follows reports whether the connection is the one of the lane that had so many before.
func (s *callProgress) follows(before uint64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.before == before
}

// mayLeave reports whether no call is in progress of which the client has no reply: it may close
// the connection at any moment, or has.
func (s *callProgress) mayLeave() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.finished == s.begun || s.replying || s.closing
}

// mayEnd reports whether the connection must end because the upstream has: not while a call is in
// progress, nor if one was in transit when the far end reported it. The far end has then opened
// another connection for that call.
func (s *callProgress) mayEnd(e *upstreamEnd) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closing = s.finished == s.begun && (e.idle || e.calls == s.begun)
	s.ends = !s.closing && !e.idle
	return s.closing
}

// close lets no call begin any more, and reports whether none is in progress: a connection that the
// proxy then closes ends in order.
func (s *callProgress) close() (idle bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closing = true
	return s.finished == s.begun
}

// closeBehind lets no call begin any more if the one whose reply is written is the only one in
// progress, and reports that.
func (s *callProgress) closeBehind() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closing = s.begun == s.finished+1
	return s.closing
}

// upstreamEnd is why the connection must end once no call is in progress.
type upstreamEnd struct {
	broken bool
	idle   bool // an idle time-out here; it applies only if no call began meanwhile
	calls  uint64
	octets []byte
}

// latestEnd holds the latest reason for which the connection must end; the writer handles it when
// no call is in progress.
type latestEnd chan upstreamEnd

func (l latestEnd) put(e upstreamEnd) {
	for {
		select {
		case l <- e:
			return
		default:
		}
		select {
		case <-l: // an older one
		default:
		}
	}
}

package flow

import (
	"slices"
)

// pairing finds the request that each reply answers: the next one, for HTTP/1.x replies come in order; but never one that was sent after
// the reply, and after lost octets the latest one before it, since the replies to those between may be among what was lost.
type pairing struct {
	res      *HTTPResult
	requests []*Message
	sent     []int // by request: the number of the last packet that one up to here began in
	done     int   // requests that have an exchange
	interim  []*Message
	asked    int // the request that the reply being read answers, -1 for none
}

// add takes the next request.
func (q *pairing) add(m *Message) {
	last := m.FirstPacket
	if n := len(q.sent); n > 0 {
		last = max(last, q.sent[n-1])
	}
	q.requests, q.sent = append(q.requests, m), append(q.sent, last)
}

// method is the method of the request that a reply answers; it is remembered for the call of reply that follows.
func (q *pairing) method(m *Message, resumed bool) string {
	q.asked = -1
	if before, _ := slices.BinarySearch(q.sent, m.FirstPacket); before > q.done {
		q.asked = q.done
		if resumed && m.Offset > 0 {
			q.asked = before - 1
		}
	}
	if q.asked < 0 || len(q.requests[q.asked].Head.Octets) == 0 {
		return ""
	}
	return string(q.requests[q.asked].Head.Method())
}

// reply adds a reply; true if what follows is no HTTP.
func (q *pairing) reply(m *Message, resumed bool) (tunnel bool) {
	if len(m.Head.Octets) == 0 {
		q.method(m, resumed)
	}
	status := m.Head.Status()
	if status/100 == 1 && status != 101 {
		q.interim = append(q.interim, m)
		return false
	}
	e := Exchange{Reply: m, Interim: q.interim}
	q.interim = nil
	if q.asked >= 0 {
		q.unanswered(q.asked)
		e.Request = q.requests[q.asked]
		q.done = q.asked + 1
	}
	q.res.Exchanges = append(q.res.Exchanges, e)
	connect := e.Request != nil && len(e.Request.Head.Octets) > 0 && string(e.Request.Head.Method()) == "CONNECT" && status/100 == 2
	if status != 101 && !connect {
		return false
	}
	if e.Request != nil {
		q.res.Tunnel[q.res.Requests] = e.Request.End()
	}
	q.requests, q.sent = q.requests[:q.done], q.sent[:q.done]
	return true
}

// unanswered gives the requests before index to exchanges without a reply.
func (q *pairing) unanswered(to int) {
	for ; q.done < to; q.done++ {
		q.res.Exchanges = append(q.res.Exchanges, Exchange{Request: q.requests[q.done]})
	}
}

func (q *pairing) finish() {
	n := len(q.requests)
	if len(q.interim) > 0 {
		e := Exchange{Interim: q.interim}
		if q.done < n {
			e.Request = q.requests[q.done]
			q.done++
		}
		q.res.Exchanges = append(q.res.Exchanges, e)
	}
	q.unanswered(n)
	slices.SortStableFunc(q.res.Exchanges, func(a, b Exchange) int { return a.first() - b.first() })
}

// first is the number of the exchange's first packet.
func (e Exchange) first() int {
	switch {
	case e.Request != nil:
		return e.Request.FirstPacket
	case len(e.Interim) > 0:
		return e.Interim[0].FirstPacket
	}
	return e.Reply.FirstPacket
}

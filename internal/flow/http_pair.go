package flow

import "sort"

// pairing finds the request that each reply answers: the next one, since HTTP/1.x replies come in
// order. It is never one that was sent after the reply, which it was not if it is earlier in the
// capture, or the reply acknowledges it. After lost bytes it is the latest one
// before the reply, since the replies to the requests between may be among the lost bytes.
type pairing struct {
	open    []*waiting // requests without a reply
	last    int        // the number of the last packet that a request began in
	ids     int
	early   *HTTPExchange // answered before the end of its request
	interim []*HTTPMessage
	asking  int // index in open of the request that the current reply answers, -1 for none
}

// waiting is a request that has no reply yet. sent is the number of the last packet in which a
// request up to this one began.
type waiting struct {
	*HTTPExchange
	sent int
}

// add adds the next request, whose head was read.
func (h *HTTP) add(m *HTTPMessage) {
	requests := &h.dirs[h.Requests]
	if requests.begun == m {
		requests.begun = nil
		return
	}
	h.last = max(h.last, m.FirstPacket)
	h.ids++
	h.open = append(h.open, &waiting{&HTTPExchange{ID: h.ids, Request: m}, h.last})
	if len(h.open) > h.cfg.Unanswered {
		h.unanswered(1)
	}
}

// asked passes on a whole request.
func (h *HTTP) asked(m *HTTPMessage) {
	if x := h.early; x != nil && x.Request == m {
		h.early, h.Tunnel = nil, h.Switch != nil
		h.cfg.Request(x)
		h.cfg.Reply(x)
		return
	}
	for _, x := range h.open {
		if x.Request == m {
			x.told = true
			h.cfg.Request(x.HTTPExchange)
		}
	}
}

// method returns the method of the request that a reply answers; the request is remembered for the
// following call of reply.
func (h *HTTP) method(m *HTTPMessage, resumed bool) string {
	h.asking = -1
	if requests := &h.dirs[h.Requests]; len(h.open) == 0 && requests.begun == nil && requests.begins() {
		begun := requests.next()
		h.add(begun)
		requests.begun = begun
	}
	if before := sort.Search(len(h.open), func(i int) bool {
		return h.open[i].sent >= m.FirstPacket && h.open[i].Request.Offset >= m.acked
	}); before > 0 {
		h.asking = 0
		if resumed && m.Offset > 0 {
			h.asking = before - 1
		}
	}
	if h.asking < 0 || len(h.open[h.asking].Request.head.Octets) == 0 {
		return ""
	}
	return string(h.open[h.asking].Request.head.Method())
}

// reply adds a reply.
func (h *HTTP) reply(m *HTTPMessage, resumed bool) {
	if len(m.head.Octets) == 0 {
		h.method(m, resumed)
	}
	status := m.head.Status()
	if status/100 == 1 && status != 101 {
		const most = 16
		if m.Body.Free(); len(h.interim) < most {
			h.interim = append(h.interim, m)
		}
		return
	}
	x := &HTTPExchange{}
	if h.asking >= 0 {
		h.unanswered(h.asking)
		x = h.open[0].HTTPExchange
		h.drop(1)
	} else {
		h.ids++
		x.ID = h.ids
	}
	x.Reply, x.Interim, h.interim = m, h.interim, nil
	if status == 101 || status/100 == 2 && x.connects() {
		h.Switch = x
	}
	if x.Request != nil && !x.told && h.early == nil {
		h.early = x
		return
	}
	h.Tunnel = h.Switch != nil
	h.cfg.Reply(x)
}

// connects reports whether the request asks for a tunnel.
func (x *HTTPExchange) connects() bool {
	return x.Request != nil && len(x.Request.head.Octets) > 0 && string(x.Request.head.Method()) == "CONNECT"
}

// ended reports whether no further message comes in a direction.
func (h *HTTP) ended(replies bool) bool { return h.Switch != nil && (replies || h.early == nil) }

// unanswered stops waiting for the replies to the first n requests that wait.
func (h *HTTP) unanswered(n int) {
	for _, x := range h.open[:n] {
		if x.told {
			h.cfg.NoReply(x.HTTPExchange)
		}
	}
	h.drop(n)
	h.asking -= n
}

// drop removes the first n requests that wait.
func (h *HTTP) drop(n int) {
	clear(h.open[:n])
	if h.open = h.open[n:]; len(h.open) == 0 {
		h.open = nil
	}
}

func (h *HTTP) finish() {
	if x := h.early; x != nil {
		h.early = nil
		h.cfg.Request(x)
		h.cfg.Reply(x)
	}
	if len(h.interim) > 0 && len(h.open) > 0 {
		h.open[0].Interim = h.interim
	}
	h.unanswered(len(h.open))
}

package proxy

import (
	"bufio"
	"bytes"
	"context"
	"net"
	"net/http"
	"slices"
	"strconv"

	"github.com/hhfr/hhfr/internal/http1"
	"github.com/hhfr/hhfr/internal/meter"
	"github.com/hhfr/hhfr/internal/sequenced"
	"github.com/hhfr/hhfr/internal/sock"
	"github.com/hhfr/hhfr/pkg/soap"
	"github.com/hhfr/hhfr/pkg/wsrm/soaprm"
)

// sequencer sends the messages of clients that are in no sequence of their own in sequences of
// WS-ReliableMessaging, and all others as they are.
type sequencer struct {
	*plainWay
	forwarder *sequenced.Forwarder
}

// newSequencer returns what does so toward an upstream; nil: nothing does.
func newSequencer(u *plainWay) *sequencer {
	if u.cfg.Reliable == "" {
		return nil
	}
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		conn, err := u.dialPlain(ctx)
		if err != nil {
			u.reach.failed(err)
			return nil, err
		}
		u.reach.worked()
		return u.p.recorded(conn), nil
	}
	return &sequencer{u, sequenced.NewForwarder(sequenced.ForwarderConfig{
		URL: u.cfg.URL, Version: u.cfg.Reliable, Store: u.p.cfg.Store, Clock: u.p.cfg.Clock, Log: u.p.cfg.Log,
		Transport: &http.Transport{DialContext: dial, DialTLSContext: dial, DisableCompression: true,
			MaxIdleConnsPerHost: maxIdleInSequence, MaxConnsPerHost: u.p.cfg.MaxConns, IdleConnTimeout: DefaultIdle},
	})}
}

// maxIdleInSequence is how many connections to an upstream are kept for further messages in
// sequences.
const maxIdleInSequence = 16

// shortInSequence is how many bytes of a message are held for a sequence in any case. Of longer
// ones there are maxLong at once; others wait in their connections.
const shortInSequence = 4 << 20

// close ends them.
func (u *sequencer) close() {
	if u != nil {
		u.p.wait.Go(u.forwarder.Close)
	}
}

// dial is a connection for a lane, whose requests go in sequences.
func (u *sequencer) dial() net.Conn {
	return u.p.within(func(in *sock.Source) { u.carry(in, journey{}) })
}

// carry sends the requests of a connection that are messages in sequences, and all others as
// they are. It reports whether the next request goes elsewhere.
func (u *sequencer) carry(in *sock.Source, j journey) (moves bool) {
	stays := func(h *http1.Head) bool { return j.stays == nil || j.stays(h) }
	if j.raw {
		return u.plainly(in, nil, plainOwn, j)
	}
	for {
		h, n, st, err := readHead(u.p.ctx, in, u.p.cfg.Idle, u.p.cfg.Pause, false)
		switch {
		case u.p.ctx.Err() != nil:
			return false
		case st != stateWhole && len(in.Peek()) == 0: // it ended, or was idle for long
			if err != nil && st == stateEnded {
				sock.Finish(u.p.ctx, in)
			}
			return false
		case j.isOver(st, &h, in):
			return true
		case st == stateWhole:
			if done, goesOn := u.exchange(in, &h, n); done && !goesOn {
				sock.Finish(u.p.ctx, in)
				return false
			} else if done {
				continue
			}
		}
		first := true
		asItIs := func(h *http1.Head) bool {
			own := first || stays(h) && takesInSequence(h) == nil
			first = false
			return own
		}
		if !u.plainly(in, nil, plainOwn, journey{stays: asItIs, byHead: j.byHead, ends: j.ends}) {
			return false
		}
	}
}

// takesInSequence returns the request of a head, if it may be one that goes in a sequence.
func takesInSequence(h *http1.Head) *http.Request {
	r, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(h.Octets)))
	if err != nil || !sequenced.Takes(r.Method, r.Header) {
		return nil
	}
	return r
}

// exchange sends a request in a sequence, and gives the client its reply. done: it did,
// and goesOn says whether there may be a next one.
func (u *sequencer) exchange(in *sock.Source, h *http1.Head, n int) (done, goesOn bool) {
	r := takesInSequence(h)
	f, err := http1.RequestFraming(h)
	if r == nil || err != nil || f.Kind == http1.NoBody {
		return false, false
	}
	last := isLast(h)
	if slices.Contains(h.Tokens("Expect"), "100-continue") && len(in.Peek()) == n {
		if _, err := in.Conn.Write([]byte("HTTP/1.1 100 Continue\r\n\r\n")); err != nil {
			return true, false
		}
	}
	g, st := gather(u.p.ctx, in, n, f, shortInSequence, 0)
	if st == stateFull {
		select {
		case u.p.long <- struct{}{}:
			defer u.p.long.leave()
		case <-u.p.ctx.Done():
			return true, false
		}
		g, st = gather(u.p.ctx, in, n, f, soaprm.MaxMessage, 0)
	}
	switch st {
	case stateWhole:
	case stateFull:
		_, _ = in.Conn.Write(errorReply(http.StatusRequestEntityTooLarge, "hhfr: a message of more than "+
			strconv.Itoa(soaprm.MaxMessage)+" bytes goes in no sequence of WS-ReliableMessaging; it was not sent"))
		return true, false
	default:
		return false, false
	}
	message := bytes.Clone(joined(g.entity()))
	if sequenced.Own(message) {
		return false, false
	}
	count := u.near.Plain(plainInSequence)
	var call meter.Call
	count.Begin(&call, u.p.cfg.Clock.Now())
	call.Name(soap.OperationName(message))
	call.From(in.Conn.RemoteAddr())
	count.Request(n + g.octets)
	call.Request(n + g.octets)
	u.p.calls.Add(1)
	defer u.p.calls.Add(-1)
	in.Take(n + g.octets)
	r.Header.Set("Host", r.Host)
	reply, err := u.forwarder.Do(u.p.late, r.URL.RequestURI(), r.Header, message)
	whole := err == nil
	if whole && soap.IsFault(reply.Body) {
		call.Fault(reply.Body)
	}
	if err != nil {
		u.p.cfg.Log.Warn("no reply in a sequence", "upstream", u.cfg.Name, "err", err)
		reply = refusedInSequence(message, err)
	}
	out := inSequenceReply(reply, last)
	if _, err = in.Conn.Write(out); err == nil {
		count.Reply(len(out))
		call.Reply(len(out))
	}
	call.Status(reply.Status)
	call.Done(u.p.cfg.Clock.Now(), whole)
	return true, err == nil && !last
}

// refusedInSequence is the reply to a request that was not answered: a fault that says why.
func refusedInSequence(message []byte, err error) *sequenced.ForwardedReply {
	v := soap.Recognize(message).Version
	fault, bad := soap.BuildFault(v, soap.Fault{Code: soap.Server, Reason: "hhfr: " + err.Error()})
	kind, worse := soap.ContentType(v, "")
	if bad != nil || worse != nil {
		fault, kind = []byte("hhfr: "+err.Error()+"\n"), "text/plain; charset=utf-8"
	}
	return &sequenced.ForwardedReply{Status: http.StatusInternalServerError,
		Fields: http.Header{"Content-Type": {kind}}, Body: fault}
}

// inSequenceReply is a reply as it goes to the client.
func inSequenceReply(r *sequenced.ForwardedReply, last bool) []byte {
	w := &answerWriter{header: r.Fields, status: r.Status}
	w.body.Write(r.Body)
	return w.wire(last)
}

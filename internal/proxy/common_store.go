package proxy

import (
	"bytes"
	"errors"
	"net/http"
	"strconv"

	"github.com/hhfr/hhfr/internal/http1"
	"github.com/hhfr/hhfr/internal/session"
	"github.com/hhfr/hhfr/internal/unchanging"
	"github.com/hhfr/hhfr/pkg/soap"
	"github.com/hhfr/hhfr/pkg/streamer"
)

// maxReferring is the longest plain request in which references are made or put back, in bytes.
const maxReferring = 256 << 10

// referrer returns what makes references for an upstream that has agreed to them; nil: it has not,
// or is asked just now, beside the calls.
func (u *plainWay) referrer() *unchanging.Referrer {
	cfg := &u.p.cfg
	if cfg.Common == nil || !u.mayRefer {
		return nil
	}
	now := cfg.Clock.Now()
	u.references.mu.Lock()
	defer u.references.mu.Unlock()
	if s := u.references.session; s != nil {
		if facts := s.Agreed().Facts; facts != nil && now.Before(facts.Expires) {
			return s.Referrer()
		}
	}
	if u.ctx.Err() == nil && (u.references.asked.IsZero() || now.Sub(u.references.asked) > u.cfg.RememberFor) {
		u.references.asked = now
		u.p.wait.Go(u.askForReferences)
	}
	return nil
}

// askForReferences offers a session of plain SOAP.
func (u *plainWay) askForReferences() {
	p := u.p
	s, err := session.Dial(u.ctx, u.cfg.URL.String(), session.Config{
		HTTPClient: u.offering(), Transports: map[string]streamer.Transport{},
		Store: p.cfg.Store, Coders: p.cfg.Coders, Common: p.cfg.Common, Archive: p.cfg.Archive, RememberFor: -1,
		Timeout: p.cfg.Timeout, Clock: p.cfg.Clock, Log: p.cfg.Log,
	})
	if err != nil {
		p.cfg.Log.Debug("no references", "upstream", u.cfg.Name, "err", err)
		return
	}
	u.references.mu.Lock()
	defer u.references.mu.Unlock()
	if s.Agreed().Facts == nil || u.ctx.Err() != nil {
		p.cfg.Log.Debug("no references", "upstream", u.cfg.Name, "err", s.Agreed().Why)
		_ = s.Close()
		return
	}
	p.cfg.Log.Info("references in plain SOAP", "upstream", u.cfg.Name)
	if before := u.references.session; before != nil {
		_ = before.Close()
	}
	u.references.session = s
}

// referred forwards a request whose references are put back, or that gets some, or whose reply may
// have some. done: it did, and goesOn says whether there may be a next one.
func (r *plainRelay) referred(h *http1.Head, n int, f http1.Framing) (done, goesOn bool) {
	p := r.u.p
	if p.restorer == nil || !mayRefer(h, f) {
		return false, false
	}
	head := h.Clone()
	g, st := gather(r.ctx, r.in, n, f, maxReferring, p.cfg.Pause)
	if st != stateWhole {
		return false, false
	}
	body := bytes.Clone(g.raw)
	whole, fragments, err := p.restorer.Restore(r.ctx, body)
	var lost *unchanging.Unrestored
	if errors.As(err, &lost) {
		r.in.Take(n + len(body))
		_, err := r.in.Conn.Write(unrestored(lost))
		return true, err == nil
	}
	if fragments == 0 {
		whole = body
	}
	by, references := whole, []string(nil)
	refer := replyReferences{referrer: r.u.referrer()}
	if refer.referrer != nil {
		if shorter, made := refer.referrer.Refer(r.ctx, whole); made != nil {
			by, references = shorter, made
		}
	}
	octets := refer.ask(p, &head)
	if fragments == 0 && references == nil && refer == (replyReferences{}) {
		return false, false
	}
	r.in.Take(n + len(body))
	c, ok := r.exchange(octets, head.Method(), by, references, refer)
	if ok && c.refused {
		c, ok = r.exchange(octets, head.Method(), whole, nil, refer)
	}
	return true, ok && (!c.becomes || r.tunnel())
}

// exchange sends a request with another body, and waits for its reply; false: there is no next one.
func (r *plainRelay) exchange(
	head, method, body []byte, references []string, refer replyReferences,
) (c *plainCall, ok bool) {
	c = r.begin(&plainCall{method: string(method), references: references, refer: refer})
	if err := r.send(append(withLength(head, len(body)), body...)); err != nil {
		r.back.Wait() // there may be a reply nevertheless
		return c, false
	}
	return c, r.wait(c)
}

// mayRefer reports whether a request may have references.
func mayRefer(h *http1.Head, f http1.Framing) bool {
	_, coded := h.Get("Content-Encoding")
	_, expects := h.Get("Expect")
	kind, _ := h.Get("Content-Type")
	return string(h.Method()) == http.MethodPost && f.Kind == http1.Length && f.Length <= maxReferring && !coded &&
		!expects && soap.ParseContentType(string(kind)).Version() != soap.None
}

// refuses takes a reply that says that the references of a call could not be put back.
func (r *plainRelay) refuses(h *http1.Head, n int, f http1.Framing, c *plainCall) bool {
	if c.references == nil || h.Status()/100 != 5 || f.Kind != http1.Length || f.Length > unchanging.MaxFault ||
		isLast(h) {
		return false
	}
	g, st := gather(r.ctx, r.up, n, f, unchanging.MaxFault, r.u.p.cfg.Pause)
	if st != stateWhole {
		return false
	}
	why, forever := unchanging.RefusedBy(g.raw, c.references)
	if why == nil {
		return false
	}
	if ref := r.u.referrer(); ref != nil {
		ref.Refused(c.references, forever, why)
	}
	r.up.Take(n + g.octets)
	r.seen.sentAgain()
	c.refused = true
	r.finish(c)
	return true
}

// unrestored is the reply to a request that cannot be made whole.
func unrestored(lost *unchanging.Unrestored) []byte {
	fault, err := soap.BuildFault(lost.Version, lost.Fault())
	kind, bad := soap.ContentType(lost.Version, "")
	if err != nil || bad != nil {
		return errorReply(http.StatusInternalServerError, "hhfr: "+lost.Error())
	}
	head := "HTTP/1.1 500 Internal Server Error\r\nContent-Type: " + kind + "\r\nContent-Length: " +
		strconv.Itoa(len(fault)) + "\r\n\r\n"
	return append([]byte(head), fault...)
}

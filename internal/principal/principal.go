// Package principal says whose memory the requests of a proxy's clients may use: what a lane
// remembers makes a message that was said before shorter, so it must be shared by nobody who could
// guess at what another one sends (docs/security.md). It owns no socket, no clock and no lock.
//
// A [Registry] judges requests, one by one, and knows which addresses have shown which proof. A
// [Client] follows the requests of one connection.
package principal

import (
	"bytes"
	"net/http"
	"net/netip"
	"time"

	"github.com/hhfr/hhfr/internal/http1"
)

// Mode is what connections of one address have in common.
type Mode uint8

const (
	// ByProof: those that show the same proof are of one client.
	ByProof Mode = iota
	// ByAddress: all are of one client.
	ByAddress
	// ByConnection: each is a client of its own.
	ByConnection
)

// Lifetime is how long a memory lives that no connection uses, and how long an address that has
// shown a second proof has no memory that outlives a connection.
const Lifetime = time.Hour

// Manifold is how many connections of one address that show no proof make a [Verdict] propose that
// the address be taken for a client.
const Manifold = 300

// Peer is where a request comes from.
type Peer struct {
	Addr        netip.Addr // the zero one: not known
	Certificate []byte     // of the TLS client, DER; nil: it has shown none
}

// Key is whose memory may outlive a connection; the zero one: nobody's. Keys are comparable.
type Key struct {
	addr  netip.Addr
	proof proof
}

// IsShared reports whether there may be other connections with this key.
func (k Key) IsShared() bool { return k.addr.IsValid() }

// Addr is the address of the connections with this key.
func (k Key) Addr() netip.Addr { return k.addr }

// Verdict is what a request may share.
type Verdict struct {
	// Key is that of the connections that it may share a memory with.
	Key Key
	// Emptied: nothing that is remembered for the address of the request may be used any more.
	Emptied bool
	// Proposes: the address is that of [Manifold] connections that had nothing in common, which is
	// said once.
	Proposes bool

	voice  voice
	alone  bool // nothing says who sent it, but somebody else forwards it
	follow bool // it shares only with what its connection said before
}

// Judge judges a request, whose head it does not retain; opens: the first one of its connection.
func (r *Registry) Judge(from Peer, h *http1.Head, opens bool, now time.Time) Verdict {
	s := read(h)
	v := Verdict{follow: s.isEmpty}
	from.Addr = from.Addr.Unmap()
	mayShare := from.Addr.IsValid() && !s.isPage && (s.isSOAP || s.isEmpty)
	if r.mode == ByAddress {
		if mayShare {
			v.Key.addr = from.Addr
		}
		v.voice.page = r.digest(s.page...)
		return v
	}
	p := r.proofOf(from, &s)
	v.voice = voice{p, r.digest(s.page...), r.digest(s.forwarded...)}
	v.alone = len(s.forwarded) > 0 && p == proof{}
	if r.mode == ByConnection || !from.Addr.IsValid() || len(s.forwarded) > 0 {
		return v
	}
	e := r.entry(from.Addr, now)
	v.Emptied = p != proof{} && e.shows(p, now)
	switch isOne := e.isOne(now); {
	case !mayShare || !isOne:
	case p != proof{} && !s.isChanging && !from.Addr.IsLoopback():
		v.Key = Key{from.Addr, p}
	case opens && !v.follow:
		if e.strangers++; e.strangers == Manifold && !r.proposed {
			r.proposed, v.Proposes = true, true
		}
	}
	return v
}

// voice is who speaks, as far as heads tell: what the requests of one connection that stands for
// several clients differ in.
type voice struct {
	proof           proof
	page, forwarded digest
}

// Client is one connection. Its zero value has had no request yet.
type Client struct {
	// Key is that of the memory that it uses; the zero one: a memory of its own.
	Key Key

	voice voice
	alone bool
	begun bool
}

// Next takes the verdict on the next request of the connection. It reports whether nothing of what
// was said before may be used for it, nor for what follows: another client may have said that. The
// connection has a memory of its own from then on.
func (c *Client) Next(v Verdict) (forgets bool) {
	before := *c
	c.voice, c.alone, c.begun = v.voice, v.alone, true
	switch {
	case !before.begun:
		if !v.follow {
			c.Key = v.Key
		}
		return false
	case before.Key.IsShared():
		if v.Key != before.Key {
			c.Key = Key{}
		}
		return v.Key != before.Key
	case before.voice == voice{} && !before.alone:
		// A client that was asked for its proof goes on; nobody else has spoken yet.
		return v.alone || v.voice.page != digest{} || v.voice.forwarded != digest{}
	}
	return v.alone || v.voice != before.voice
}

// said is what the head of a request says of its client.
type said struct {
	isSOAP, isEmpty bool // a POST of SOAP, or of nothing
	isPage          bool // a page in a browser may have had it sent
	isChanging      bool // its proof is another one each time, or is none
	authorization   [][]byte
	cookies         [][]byte
	page, forwarded [][]byte // the fields that name the page, and who forwards
}

// soapTypes are the media types that no page can send by itself.
var soapTypes = [...]string{"text/xml", "application/soap+xml", "multipart/related"}

func read(h *http1.Head) (s said) {
	isPost, types, isWhole := string(h.Method()) == http.MethodPost, 0, true
	for _, f := range h.Fields() {
		switch {
		case f.Is("Content-Type"):
			types++
			s.isSOAP = types == 1 && isSOAP(f.Unfolded())
		case f.Is("Content-Length"):
			isWhole = string(f.Value) == "0"
		case f.Is("Transfer-Encoding"):
			isWhole = false
		case f.Is("Upgrade"):
			isPost = false // what follows may be anything
		case f.Is("Authorization"):
			s.authorization = append(s.authorization, f.Unfolded())
			s.isChanging = s.isChanging || !isConstant(f.Unfolded())
		case f.Is("Cookie"):
			s.cookies = append(s.cookies, f.Unfolded())
		case f.Is("Origin"), hasPrefix(f.Name, "Sec-Fetch-"):
			s.page = append(s.page, f.Name, f.Unfolded())
		case f.Is("Referer"):
			s.page = append(s.page, f.Name, site(f.Unfolded()))
		case f.Is("Forwarded"), f.Is("Via"), f.Is("X-Real-IP"), hasPrefix(f.Name, "X-Forwarded-"):
			s.forwarded = append(s.forwarded, f.Name, f.Unfolded())
		}
	}
	s.isSOAP, s.isEmpty = isPost && s.isSOAP, isPost && types == 0 && isWhole
	s.isPage = len(s.page) > 0
	return s
}

// isSOAP reports whether a value of Content-Type is one of soapTypes.
func isSOAP(value []byte) bool {
	media, _, _ := bytes.Cut(value, []byte{';'})
	media = bytes.TrimSpace(media)
	for _, one := range soapTypes {
		if len(media) == len(one) && hasPrefix(media, one) {
			return true
		}
	}
	return false
}

// site is where the page of a Referer is from.
func site(referer []byte) []byte {
	if at := bytes.Index(referer, []byte("://")); at >= 0 {
		if end := bytes.IndexAny(referer[at+3:], "/?#"); end >= 0 {
			return referer[:at+3+end]
		}
	}
	return referer
}

func hasPrefix(b []byte, prefix string) bool {
	return len(b) >= len(prefix) && bytes.EqualFold(b[:len(prefix)], []byte(prefix))
}

package responder

import (
	"time"
	"unique"

	"github.com/hhfr/hhfr/pkg/negotiate"
)

// keptFacts are the facts of a session as long as it lasts. What most sessions of a server have in
// common is there once.
type keptFacts struct {
	whole   *negotiate.Facts // nil: the others say all
	session negotiate.SessionID
	expires time.Time
	terms   unique.Handle[commonTerms]
}

// commonTerms are what was agreed on in many sessions.
type commonTerms struct {
	scheme, representation, transport, assurance, security string
	requestDescription, replyDescription                   string
	origin, path, address                                  string
	proxy                                                  bool
}

// keep returns facts as they are kept.
func keep(f *negotiate.Facts) keptFacts {
	if f.Sequence != "" || f.Common != nil || len(f.Headers) > 0 || len(f.PeerShapes) > 0 {
		own := *f
		return keptFacts{whole: &own}
	}
	return keptFacts{session: f.Session, expires: f.Expires, terms: unique.Make(commonTerms{
		f.Scheme, f.Representation, f.Transport, f.Assurance, f.Security,
		f.RequestDescription, f.ReplyDescription,
		f.Origin, f.Path, f.Address,
		f.Proxy,
	})}
}

// facts returns what was kept.
func (k *keptFacts) facts() negotiate.Facts {
	if k.whole != nil {
		return *k.whole
	}
	t := k.terms.Value()
	return negotiate.Facts{
		Session: k.session, Expires: k.expires,
		Scheme: t.scheme, Representation: t.representation, Transport: t.transport,
		Assurance: t.assurance, Security: t.security,
		RequestDescription: t.requestDescription, ReplyDescription: t.replyDescription,
		Origin: t.origin, Path: t.path, Address: t.address,
		Proxy: t.proxy,
	}
}

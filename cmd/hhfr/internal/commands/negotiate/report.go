package negotiate

import (
	"fmt"
	"io"
	"net/url"
	"strings"
	"time"

	"github.com/hhfr/hhfr/cmd/hhfr/internal/printing"
	"github.com/hhfr/hhfr/internal/session"
	"github.com/hhfr/hhfr/pkg/negotiate"
)

// NegotiateReport is what `hhfr negotiate -o json` prints.
type NegotiateReport struct {
	Version int            `json:"version"`             // of this format
	URL     string         `json:"url"`                 // as given, without a password
	HHFR    bool           `json:"hhfr"`                // a stream was agreed on by one of the modes, and opened
	Why     string         `json:"why_plain,omitempty"` // why the outcome is plain SOAP, as the last mode has it
	Tried   []TriedReport  `json:"tried"`               // the modes that were tried, in their order
	Offered *offeredReport `json:"offered,omitempty"`   // what the offer contained; URIs, preferred first
	Agreed  *agreedReport  `json:"agreed,omitempty"`    // the session that was agreed on last
	Refused []refusedItem  `json:"refused"`             // items that the peer did not agree to
	Ignored ignoredReport  `json:"ignored"`             // elements that were not known, as {namespace}name
}

// TriedReport is the JSON of one attempt to open a session.
type TriedReport struct {
	Mode      string     `json:"mode"`                // met, declared, first-call or explicit
	HHFR      bool       `json:"hhfr"`                // a stream was agreed on by this mode, and opened
	Why       string     `json:"why,omitempty"`       // why not
	Session   string     `json:"session,omitempty"`   // the session, urn:uuid; also if it is only shown
	Transport string     `json:"transport,omitempty"` // URI of the transport, if one was chosen
	Address   string     `json:"address,omitempty"`   // address at which the stream was to be opened
	Expires   *time.Time `json:"expires,omitempty"`   // end of the session
}

type offeredReport struct {
	Scheme         []string `json:"scheme"`                        // URIs of schemes
	Representation []string `json:"representation"`                // URIs of representations
	Transport      []string `json:"transport"`                     // URIs of transports
	Assurance      []string `json:"assurance"`                     // delivery assurance
	Security       []string `json:"security"`                      // security of the stream
	Request        string   `json:"request_description,omitempty"` // URI of the description of requests
	Reply          string   `json:"reply_description,omitempty"`   // URI of the description of replies
	// number of header blocks that messages have in common
	Headers int `json:"unchanging_headers"`
	Shapes  int `json:"shapes"` // number of fingerprints of shapes
}

type agreedReport struct {
	Session        string    `json:"session"`                       // urn:uuid
	Mode           string    `json:"mode"`                          // the mode that agreed on it
	Scheme         string    `json:"scheme"`                        // URI of the scheme
	Representation string    `json:"representation"`                // URI of the representation
	Transport      string    `json:"transport"`                     // URI of the transport
	Address        string    `json:"address"`                       // address of the stream
	Assurance      string    `json:"assurance,omitempty"`           // delivery assurance
	Security       string    `json:"security,omitempty"`            // security of the stream
	Request        string    `json:"request_description,omitempty"` // URI of the description of requests
	Reply          string    `json:"reply_description,omitempty"`   // URI of the description of replies
	Headers        int       `json:"unchanging_headers"`            // number of them that are agreed on
	Shapes         int       `json:"shapes"`                        // number of shapes that both peers have
	Expires        time.Time `json:"expires"`                       // end of the session, unless it is ended before
}

// refusedItem is one item that was refused.
type refusedItem struct {
	Item string `json:"item"` // name of the element
	Why  string `json:"why"`  // in the words of the peer
}

type ignoredReport struct {
	Offer  []string `json:"offer"`  // of the offer, at the peer
	Answer []string `json:"answer"` // of the answer, at this side
}

func newNegotiateReport(url string) *NegotiateReport {
	return &NegotiateReport{
		Version: 1, URL: redacted(url), Tried: []TriedReport{}, Refused: []refusedItem{},
		Ignored: ignoredReport{[]string{}, []string{}},
	}
}

// remembered notes what a store has; it is not used.
func (r *NegotiateReport) remembered(m session.Recollection) {
	t := TriedReport{Mode: string(negotiate.Met), Why: "nothing is remembered"}
	switch {
	case m.Met != nil:
		t.Session, t.Transport, t.Address, t.Expires = m.Met.Session.String(), m.Met.Transport, m.Met.Address,
			inSeconds(m.Met.Expires)
		t.Why = "not tried: " + t.Session + " could be joined; its token is good once"
	case m.Plain != "":
		t.Why = "remembered: " + m.Plain
	}
	r.Tried = append(r.Tried, t)
}

func inSeconds(t time.Time) *time.Time {
	t = t.UTC().Truncate(time.Second)
	return &t
}

// add notes the outcome of a mode.
func (r *NegotiateReport) add(a negotiate.Agreed) {
	for _, t := range a.Tried {
		one := TriedReport{Mode: string(t.Mode), HHFR: t.Why == "", Why: t.Why, Transport: t.Transport,
			Address: t.Address}
		if one.HHFR && a.Facts != nil {
			one.Session, one.Expires = a.Facts.Session.String(), inSeconds(a.Facts.Expires)
		}
		r.Tried = append(r.Tried, one)
	}
	if r.HHFR = r.HHFR || a.HHFR; r.HHFR {
		r.Why = ""
	} else {
		r.Why = a.Why
	}
	if o := a.Offer; o != nil {
		r.Offered = &offeredReport{
			Scheme: o.Schemes, Representation: o.Representations, Transport: o.Transports, Assurance: o.Assurances,
			Security: o.Securities,
			Request:  o.Request.Name(), Reply: o.Reply.Name(), Headers: len(o.Headers), Shapes: len(o.Shapes),
		}
	}
	if f := a.Facts; f != nil {
		r.Agreed = &agreedReport{
			Mode: string(a.Mode), Session: f.Session.String(), Scheme: f.Scheme, Representation: f.Representation,
			Transport: f.Transport, Address: f.Address,
			Assurance: f.Assurance, Security: f.Security, Request: f.RequestDescription, Reply: f.ReplyDescription,
			Headers: len(f.Headers), Shapes: len(f.PeerShapes), Expires: *inSeconds(f.Expires),
		}
	}
	for _, d := range a.Refused {
		r.Refused = append(r.Refused, refusedItem{d.Item, d.Why})
	}
	offer, answer := a.Ignored()
	for _, n := range offer {
		r.Ignored.Offer = append(r.Ignored.Offer, n.String())
	}
	for _, n := range answer {
		r.Ignored.Answer = append(r.Ignored.Answer, n.String())
	}
}

// redacted is a URL without its password.
func redacted(raw string) string {
	u, err := url.Parse(raw)
	if err != nil {
		return ""
	}
	return u.Redacted()
}

// print writes the report for people: one line per mode, and one line per item with offered and
// agreed side by side.
func (r *NegotiateReport) print(w io.Writer) error {
	var b strings.Builder
	for _, t := range r.Tried {
		fmt.Fprintf(&b, "%-20s %s\n", "by "+t.Mode, t.outcome())
	}
	o, a := r.Offered, r.Agreed
	answered := o == nil || a != nil && a.Mode == string(negotiate.Explicit)
	if o == nil {
		o = &offeredReport{}
	}
	if a == nil || !answered {
		a = &agreedReport{}
	}
	line := func(item, agreed string, offered ...string) {
		switch {
		case agreed == "" && len(offered) == 0:
			return
		case r.Offered == nil:
			fmt.Fprintf(&b, "%-20s %s\n", item, agreed)
			return
		case !answered:
			agreed = "-"
		}
		fmt.Fprintf(&b, "%-20s %-36s offered %s\n", item, agreed, strings.Join(offered, ", "))
	}
	line("scheme", a.Scheme, o.Scheme...)
	line("representation", a.Representation, o.Representation...)
	line("transport", a.Transport, o.Transport...)
	line("assurance", a.Assurance, o.Assurance...)
	line("security", a.Security, o.Security...)
	for _, d := range []struct{ item, agreed, offered string }{{"request description", a.Request, o.Request},
		{"reply description", a.Reply, o.Reply}} {
		if d.agreed != "" || d.offered != "" {
			line(d.item, printing.OrNone(d.agreed), printing.OrNone(d.offered))
		}
	}
	if o.Headers > 0 {
		line("unchanging headers", fmt.Sprint(a.Headers), fmt.Sprint(o.Headers))
	}
	if r.Offered != nil {
		line("shapes", fmt.Sprint(a.Shapes), fmt.Sprint(o.Shapes))
	}
	for _, d := range r.Refused {
		fmt.Fprintf(&b, "%-20s %s: %s\n", "refused", d.Item, d.Why)
	}
	for _, n := range r.Ignored.Offer {
		fmt.Fprintf(&b, "%-20s %s of the offer\n", "ignored", n)
	}
	for _, n := range r.Ignored.Answer {
		fmt.Fprintf(&b, "%-20s %s of the answer\n", "ignored", n)
	}
	if r.HHFR {
		fmt.Fprintf(&b, "%-20s %s at %s until %s\n", "session", r.Agreed.Session, r.Agreed.Address,
			r.Agreed.Expires.Format(time.RFC3339))
	} else {
		fmt.Fprintf(&b, "%-20s %s\n", "plain SOAP", r.Why)
	}
	_, err := io.WriteString(w, printing.Lines(b.String()))
	return err
}

// outcome is the result of a mode, in words.
func (t *TriedReport) outcome() string {
	if t.HHFR {
		return "agreed: " + t.Transport + " at " + t.Address
	}
	return t.Why
}

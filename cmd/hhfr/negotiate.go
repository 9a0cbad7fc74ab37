package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/hhfr/hhfr/pkg/codec/binary"
	"github.com/hhfr/hhfr/pkg/ctxstore"
	"github.com/hhfr/hhfr/pkg/ctxstore/engines"
	"github.com/hhfr/hhfr/pkg/negotiate"
	"github.com/hhfr/hhfr/pkg/peer"
	"github.com/hhfr/hhfr/pkg/schema"
	"github.com/hhfr/hhfr/pkg/soap"
)

type negotiateOptions struct {
	url, representation, soap, schema, replySchema, store, output string
	allowHost, headerFiles, fields                                []string
	requireHHFR                                                   bool
	timeout                                                       time.Duration
	tls                                                           clientTLS
}

func newNegotiate(env Env, g *global) *cobra.Command {
	var o negotiateOptions
	c := &cobra.Command{
		Use:   "negotiate URL",
		Short: "Negotiate with a service and tell what was agreed, or why not",
		Long: `negotiate makes an offer to the service at URL, opens the stream that the answer names, closes it again, and prints what was offered, what was agreed, what was
refused and why, and which elements each end did not know. It always asks: what is remembered of the service does not count, and nothing is remembered.

Exit code 0 also where the outcome is plain SOAP; with --require-hhfr that is 3.`,
		Example: `  hhfr negotiate http://127.0.0.1:8080/echo
  hhfr negotiate http://127.0.0.1:8080/echo -o json --require-hhfr
  hhfr negotiate http://127.0.0.1:8080/echo --soap 1.2 --representation xml`,
		Args: takes("URL"),
		RunE: func(c *cobra.Command, args []string) error {
			o.url = args[0]
			return runNegotiate(c.Context(), env, g, o)
		},
	}
	f := c.Flags()
	f.StringVar(&o.representation, "representation", "", "offer binary or xml alone; empty: both, binary first")
	f.StringVar(&o.soap, "soap", "", "version of the offer, 1.1 or 1.2; empty: 1.1, and 1.2 where that is refused for its version")
	f.StringVar(&o.schema, "schema", "", "HHFR Schema of the requests, a file")
	f.StringVar(&o.replySchema, "reply-schema", "", "HHFR Schema of the replies, a file")
	headerFlag(f, &o.headerFiles)
	f.StringVar(&o.store, "store", "mem:", "context store: "+strings.Join(engines.Forms(), " or ")+"; its shapes are offered")
	f.StringArrayVar(&o.allowHost, "allow-host", nil, "a host that the answer may name for the stream beside that of the URL")
	fieldsFlag(f, &o.fields, "the offer")
	f.BoolVar(&o.requireHHFR, "require-hhfr", false, "fail (exit 3) if the outcome is plain SOAP")
	f.DurationVar(&o.timeout, "timeout", negotiate.DefaultTimeout, "plain SOAP, if there is no stream after this time")
	o.tls.flags(f, "URL")
	outputFlag(c, &o.output, "text", "json")
	return c
}

func (o *negotiateOptions) config(g *global, store ctxstore.Store, secure *secured) (cfg negotiate.Config, err error) {
	book := binary.NewBook(ctxstore.Shapes{Store: store})
	log := g.logger()
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.TLSClientConfig = secure.config
	cfg = negotiate.Config{
		HTTPClient: &http.Client{Transport: transport}, Store: store, Coders: negotiate.BookCoders(book),
		AllowHost: o.allowHost, RequireHHFR: o.requireHHFR, ProbeTLS: true, RememberFor: -1, Timeout: o.timeout, Log: log,
	}
	if cfg.OfferFields, err = peer.ParseFields(o.fields); err != nil {
		return cfg, err
	}
	if o.representation != "" {
		cfg.Representations = []string{o.representation}
	}
	if o.soap != "" {
		if cfg.SOAP, err = soap.ParseVersion(o.soap); err != nil {
			return cfg, usage(fmt.Errorf("--soap: %w", err), "")
		}
	}
	if cfg.RequestSchema, err = readSchema(o.schema); err != nil {
		return cfg, err
	}
	if cfg.Headers, err = readHeaders(o.headerFiles); err != nil {
		return cfg, err
	}
	cfg.ReplySchema, err = readSchema(o.replySchema)
	return cfg, err
}

// readSchema reads the file of --schema or --reply-schema; nil without one.
func readSchema(name string) (*schema.Schema, error) {
	if name == "" {
		return nil, nil
	}
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	s, err := schema.Parse(text)
	if err != nil {
		return nil, &problem{exitMalformed, fmt.Errorf("%s: %w", name, err), "the HHFR Schema dialect is told in docs/negotiation.md, section 8"}
	}
	return s, nil
}

func runNegotiate(ctx context.Context, env Env, g *global, o negotiateOptions) (err error) {
	if _, err := checkURL("URL", o.url); err != nil {
		return err
	}
	if o.timeout <= 0 {
		return usage(errors.New("--timeout is more than 0"), "")
	}
	if err := checkFields(o.fields); err != nil {
		return err
	}
	secure, err := o.tls.open(env.System)
	if err != nil {
		return err
	}
	defer secure.close()
	store, err := openStore(ctx, o.store, g.logger())
	if err != nil {
		return err
	}
	defer func() { _ = store.Close() }()
	cfg, err := o.config(g, store, secure)
	if err != nil {
		return err
	}
	defer cfg.HTTPClient.CloseIdleConnections()
	var agreed negotiate.Agreed
	session, err := negotiate.Dial(ctx, o.url, cfg)
	var e *negotiate.Error
	switch {
	case err == nil:
		agreed = session.Agreed()
		defer func() { err = errors.Join(err, session.Close()) }()
	case errors.As(err, &e) && e.Agreed != nil:
		agreed = *e.Agreed
		if e.Code == negotiate.NoHHFR {
			err = &problem{exitNoPeer, err, "without --require-hhfr that is no failure"}
		}
	default:
		return err
	}
	r := newNegotiateReport(o.url, &agreed)
	if o.output == "json" {
		return errors.Join(writeJSON(env.Out, r), err)
	}
	return errors.Join(r.print(env.Out), err)
}

// negotiateReport is what `hhfr negotiate -o json` prints.
type negotiateReport struct {
	Version int            `json:"version"`             // of this format
	URL     string         `json:"url"`                 // as given, without a password
	HHFR    bool           `json:"hhfr"`                // a stream was agreed on, and opened
	Why     string         `json:"why_plain,omitempty"` // why it is plain SOAP
	Offered *offeredReport `json:"offered,omitempty"`   // what the offer said; URIs, preferred first
	Agreed  *agreedReport  `json:"agreed,omitempty"`    // what the answer selected
	Refused []refusedItem  `json:"refused"`             // items that the other end did not agree to
	Ignored ignoredReport  `json:"ignored"`             // elements that were not known, as {namespace}name
}

type offeredReport struct {
	Scheme         []string `json:"scheme"`                        // URI-S
	Representation []string `json:"representation"`                // URI-R
	Transport      []string `json:"transport"`                     // URI-T
	Assurance      []string `json:"assurance"`                     // of delivery
	Security       []string `json:"security"`                      // of the stream
	Request        string   `json:"request_description,omitempty"` // URI of what describes requests
	Reply          string   `json:"reply_description,omitempty"`   // URI of what describes replies
	Headers        int      `json:"unchanging_headers"`            // how many header blocks that messages have in common
	Shapes         int      `json:"shapes"`                        // how many fingerprints of shapes
}

type agreedReport struct {
	Session        string    `json:"session"`                       // urn:uuid
	Scheme         string    `json:"scheme"`                        // URI-S
	Representation string    `json:"representation"`                // URI-R
	Transport      string    `json:"transport"`                     // URI-T
	Address        string    `json:"address"`                       // where the stream is opened
	Assurance      string    `json:"assurance,omitempty"`           // of delivery
	Security       string    `json:"security,omitempty"`            // of the stream
	Request        string    `json:"request_description,omitempty"` // URI of what describes requests
	Reply          string    `json:"reply_description,omitempty"`   // URI of what describes replies
	Headers        int       `json:"unchanging_headers"`            // how many of them are agreed on
	Shapes         int       `json:"shapes"`                        // how many shapes both ends have
	Expires        time.Time `json:"expires"`                       // end of the session, if nobody ends it before
}

// refusedItem is one item that was refused.
type refusedItem struct {
	Item string `json:"item"` // name of the element
	Why  string `json:"why"`  // as the other end said it
}

type ignoredReport struct {
	Offer  []string `json:"offer"`  // of the offer, by the other end
	Answer []string `json:"answer"` // of the answer, by this end
}

func newNegotiateReport(url string, a *negotiate.Agreed) *negotiateReport {
	r := &negotiateReport{Version: 1, URL: redacted(url), HHFR: a.HHFR, Why: a.Why, Refused: []refusedItem{}, Ignored: ignoredReport{[]string{}, []string{}}}
	if o := a.Offer; o != nil {
		r.Offered = &offeredReport{
			Scheme: o.Schemes, Representation: o.Representations, Transport: o.Transports, Assurance: o.Assurances, Security: o.Securities,
			Request: nameOf(o.Request), Reply: nameOf(o.Reply), Headers: len(o.Headers), Shapes: len(o.Shapes),
		}
	}
	if f := a.Facts; f != nil {
		r.Agreed = &agreedReport{
			Session: f.Session.String(), Scheme: f.Scheme, Representation: f.Representation, Transport: f.Transport, Address: f.Address, Assurance: f.Assurance, Security: f.Security,
			Request: f.RequestDescription, Reply: f.ReplyDescription, Headers: len(f.Headers), Shapes: len(f.PeerShapes), Expires: f.Expires.UTC().Truncate(time.Second),
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
	return r
}

func nameOf(d *negotiate.Description) string {
	if d == nil {
		return ""
	}
	uri, err := d.URI()
	if err != nil {
		return ""
	}
	return uri
}

// redacted is a URL without its password.
func redacted(raw string) string {
	u, err := url.Parse(raw)
	if err != nil {
		return ""
	}
	return u.Redacted()
}

// print writes the report for people: an item a line, offered and agreed side by side.
func (r *negotiateReport) print(w io.Writer) error {
	var b strings.Builder
	line := func(item, agreed string, offered ...string) {
		if agreed == "" && len(offered) == 0 {
			return
		}
		if r.Agreed == nil {
			agreed = "-"
		}
		fmt.Fprintf(&b, "%-20s %-36s offered %s\n", item, agreed, strings.Join(offered, ", "))
	}
	o, a := r.Offered, r.Agreed
	if o == nil {
		o = &offeredReport{}
	}
	if a == nil {
		a = &agreedReport{}
	}
	line("scheme", a.Scheme, o.Scheme...)
	line("representation", a.Representation, o.Representation...)
	line("transport", a.Transport, o.Transport...)
	line("assurance", a.Assurance, o.Assurance...)
	line("security", a.Security, o.Security...)
	for _, d := range []struct{ item, agreed, offered string }{{"request description", a.Request, o.Request}, {"reply description", a.Reply, o.Reply}} {
		if d.agreed != "" || d.offered != "" {
			line(d.item, orNone(d.agreed), orNone(d.offered))
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
		fmt.Fprintf(&b, "%-20s %s at %s until %s\n", "session", a.Session, a.Address, a.Expires.Format(time.RFC3339))
	} else {
		fmt.Fprintf(&b, "%-20s %s\n", "plain SOAP", r.Why)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func orNone(s string) string {
	if s == "" {
		return "none"
	}
	return s
}

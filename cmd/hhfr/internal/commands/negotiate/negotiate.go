// Package negotiate is hhfr negotiate.
package negotiate

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/hhfr/hhfr/cmd/hhfr/internal/client"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/command"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/dial"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/exit"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/flags"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/stores"
	"github.com/hhfr/hhfr/internal/engines"
	"github.com/hhfr/hhfr/internal/session"
	"github.com/hhfr/hhfr/pkg/negotiate"
	"github.com/hhfr/hhfr/pkg/soap"
)

type negotiateOptions struct {
	client.ClientOptions
	soap, output string
	lifetime     time.Duration
}

// New is the command.
func New(g *command.Global) *cobra.Command {
	var o negotiateOptions
	c := &cobra.Command{
		Use:   "negotiate URL",
		Short: "Negotiate with a service and print what was agreed, or why not",
		Long: `negotiate tries the modes of opening a session with the service at URL, sends no
message, and prints the outcome of each: what was agreed, or why nothing was. --mode auto tries all
of them: for met, the session that --store remembers is only shown, not used up; for declared, if
the WSDL of --schema declares streams at URL, one is opened there; for first-call, an OPTIONS
request asks for a stream, as the first call of hhfr stream does; for explicit, an offer in plain
SOAP names all items. Any other --mode tries that mode alone; met then joins the remembered session,
and so uses its next token.

After that it prints what was offered, what was agreed, what was refused and why, which elements
each peer did not know, and the session that was agreed last. If --store remembers that the service
uses plain SOAP, that is ignored; if this is the result now, it is not remembered. The session of
first-call is remembered in --store. HHFR Schemas, unchanging headers, --representation xml,
--transport udp, --assurance, --ordered and --lifetime can be expressed in offers alone; with any of
them, first-call is left out; with any but --representation xml, so is declared. For an assurance a
separate sequence is negotiated, which does not change --store.

The exit code is 0 even if the outcome is plain SOAP; with --require-hhfr it is 3 in that case.`,
		Example: `  hhfr negotiate http://127.0.0.1:8080/echo
  hhfr negotiate http://127.0.0.1:8080/echo -o json --require-hhfr
  hhfr negotiate http://127.0.0.1:8080/echo --soap 1.2 --representation xml
  hhfr negotiate http://127.0.0.1:8080/sum --schema 'http://127.0.0.1:8080/sum?wsdl'
  hhfr negotiate http://127.0.0.1:8080/ledger --mode explicit --assurance at-least-once --ordered`,
		Args: command.Takes("URL"),
		RunE: func(c *cobra.Command, args []string) error {
			o.URL = args[0]
			return runNegotiate(c.Context(), g, o)
		},
	}
	f := c.Flags()
	o.Flags(f)
	o.OfferFlags(f)
	flags.Mode(f, &o.Mode, "all, but what is remembered is only shown")
	f.DurationVar(&o.lifetime, "lifetime", 0, "lifetime of the session; 0: chosen by the service")
	f.StringVar(&o.soap, "soap", "", "version of the offer, 1.1 or 1.2; empty: 1.1, and 1.2 where that is refused "+
		"for its version")
	f.DurationVar(&o.Negotiate, "timeout", negotiate.DefaultTimeout,
		"use plain SOAP if there is no stream after this time")
	command.OutputFlag(c, &o.output)
	return c
}

// config is that of sessions that carry no message.
func (o *negotiateOptions) config(g *command.Global, with *client.OpenedClient) (cfg session.Config, err error) {
	if cfg, _, err = dial.Config(g, &o.ClientOptions, with); err != nil {
		return cfg, err
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.TLSClientConfig = with.Secure.Config
	cfg.HTTPClient, cfg.OnAgreed, cfg.Lifetime = &http.Client{Transport: transport}, nil, o.lifetime
	if o.soap != "" {
		if cfg.SOAP, err = soap.ParseVersion(o.soap); err != nil {
			return cfg, exit.Usagef("", "--soap: %w", err)
		}
	}
	return cfg, nil
}

func (o *negotiateOptions) check() error {
	switch {
	case o.Negotiate <= 0:
		return exit.Usagef("", "--timeout is more than 0")
	case o.lifetime < 0:
		return exit.Usagef("", "--lifetime is 0 or more")
	}
	_, err := o.CheckOffer()
	return err
}

func runNegotiate(ctx context.Context, g *command.Global, o negotiateOptions) (err error) {
	if err := o.check(); err != nil {
		return err
	}
	with, err := o.Open(ctx, g)
	defer func() { err = errors.Join(err, with.Close()) }()
	if err != nil {
		return err
	}
	cfg, err := o.config(g, with)
	if err != nil {
		return err
	}
	defer cfg.HTTPClient.CloseIdleConnections()
	r := newNegotiateReport(o.URL)
	if err := o.tryAll(ctx, cfg, r); err != nil {
		return err
	}
	if o.RequireHHFR && !r.HHFR {
		err = exit.Withf(exit.NoPeer, "without --require-hhfr that is no failure", "no HHFR: %s", r.Why)
	}
	if o.output == "json" {
		return errors.Join(g.JSON(r), err)
	}
	return errors.Join(r.print(g.Out), err)
}

// tryAll tries the modes that --mode names, and notes the outcome of each.
func (o *negotiateOptions) tryAll(ctx context.Context, cfg session.Config, r *NegotiateReport) error {
	if o.Mode != string(negotiate.Auto) {
		return o.try(ctx, cfg, negotiate.Mode(o.Mode), r)
	}
	memory, err := session.Remembered(ctx, cfg.Store, o.URL)
	if err != nil {
		return err
	}
	r.remembered(memory)
	modes := []negotiate.Mode{negotiate.FirstCall, negotiate.Explicit}
	if u, err := url.Parse(o.URL); err == nil && cfg.Contract != nil && cfg.Contract.StreamsAt(u) != nil {
		modes = slices.Insert(modes, 0, negotiate.Declared)
	}
	for _, mode := range modes {
		err := o.try(ctx, cfg, mode, r)
		var e *negotiate.Error
		if mode != negotiate.Explicit && errors.As(err, &e) && e.Code == negotiate.BadConfig {
			r.Tried = append(r.Tried, TriedReport{Mode: string(mode), Why: "not tried: " + e.Err.Error()})
			continue
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// try opens a session by one mode, and ends it.
func (o *negotiateOptions) try(ctx context.Context, cfg session.Config, mode negotiate.Mode, r *NegotiateReport) error {
	cfg.Mode, cfg.RequireHHFR = mode, true // otherwise the offer waits for a call
	if o.Sequenced() {
		// A sequence of its own, without messages of anybody.
		dir, err := os.MkdirTemp("", "hhfr-negotiate-")
		if err != nil {
			return err
		}
		defer func() { _ = os.RemoveAll(dir) }()
		file, err := engines.Open(ctx, "bolt:"+filepath.Join(dir, "store.db"), engines.Options{})
		if err != nil {
			return err
		}
		store := stores.WithSpare(file, cfg.Log)
		defer func() { _ = store.Close() }()
		cfg.Store, cfg.Coders = store, nil
	}
	sess, err := session.Dial(ctx, o.URL, cfg)
	var e *negotiate.Error
	switch {
	case err == nil:
		r.add(settled(ctx, sess, o.Negotiate))
		if o.Sequenced() {
			err = sess.Finish(ctx)
		}
		return errors.Join(err, sess.Close())
	case errors.As(err, &e) && e.Code == negotiate.NoHHFR && e.Agreed != nil:
		r.add(*e.Agreed)
		return nil
	}
	return err
}

// settled returns what a session agreed on once its stream's peer has said hello. A session that is
// joined again does not wait for that elsewhere.
func settled(ctx context.Context, sess *session.Session, within time.Duration) negotiate.Agreed {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	agreed, stream := sess.Agreed(), sess.Stream()
	select {
	case <-stream.Met():
		return sess.Agreed() // with the description that the peer has, too
	case <-stream.Done():
	case <-ctx.Done():
	}
	agreed.HHFR, agreed.Facts, agreed.Why = false, nil, "the peer does not take the session any more"
	if err := stream.Err(); err != nil {
		agreed.Why += ": " + err.Error()
	}
	agreed.Tried[len(agreed.Tried)-1].Why = agreed.Why
	return agreed
}

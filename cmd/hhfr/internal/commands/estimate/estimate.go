// Package estimate is hhfr estimate.
package estimate

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/spf13/cobra"

	"github.com/hhfr/hhfr/cmd/hhfr/internal/command"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/description"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/exit"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/flags"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/input"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/printing"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/summary"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/terminal"
	"github.com/hhfr/hhfr/internal/capture"
	"github.com/hhfr/hhfr/internal/estimate"
	"github.com/hhfr/hhfr/internal/estimate/page"
	"github.com/hhfr/hhfr/internal/flow"
	"github.com/hhfr/hhfr/internal/link"
)

type estimateOptions struct {
	files               []string
	link, html, output  string
	schema              description.SchemaSource
	price               float64
	zstdLevel           int
	lenient, perAddress bool
}

// New is the command.
func New(g *command.Global) *cobra.Command {
	var o estimateOptions
	c := &cobra.Command{
		Use:   "estimate FILE…",
		Short: "Say what a pair of proxies would save, by a capture of plain SOAP",
		Long: `estimate reads captures of plain SOAP in HTTP, all that decode reads, and says what
their calls take on thin links: as they are, with what else makes them small, and through a pair of
hhfr proxies that stands between the clients and each server. Nothing has to be installed for that.
Calls without SOAP are left out.

  plain                as captured
  plain, kept          the same with one connection for each client, which stays open
  gzip bodies          as captured, each body compressed with gzip
  dcz replies          as captured, each reply compressed by zstd with the reply before it from the
                       same URL as its dictionary (RFC 9842); that is made for what caches keep, and
                       no SOAP server is known that does so
  tunnel, zlib         one connection for all traffic of the link, such as ssh -C or a VPN: what came
                       goes at once, with four bytes that say for which connection it is, and each
                       direction is compressed as one stream, with zlib (level 6)
  tunnel, zstd         the same with zstd, at the level of --zstd-level
  hhfr                 through a pair that takes those for one client who show the same proof of who
                       they are, or have one address with --client-per-address
  hhfr, by connection  through a pair that takes each connection for a client

FIRST is from first contact on, MET through a pair that had a session with the same traffic before.
STEADY is what all calls would take if they were as those of the second half of the capture are, and
is left out of fewer than 20 calls. SMALLEST, and the line below the first table, name the smallest
of hhfr and the two tunnels: where a tunnel takes less, they say so.

Bytes have 40 for the headers of each packet in them; packets without content are those that open
and end connections. The row "between calls" has these, and what pairs need to open their streams and
to tell each other that a connection ended. The last but one table has the mean time from a request
to the end of its reply on each link, or on that of --link. "too thin": the link cannot carry the
calls at the pace of the capture.

What a pair sends is not reckoned but made: messages come to its code in the pieces and at the times
of the capture, and go on as these say to its learner, coder and encoder. Links are those of bench,
in virtual time: packets of 1,500 bytes at most, a queue, no loss, and acknowledgements are free. A
request leaves at its time in the capture, or when the replies have come that its client had before
it, whichever is later. Pairs and tunnels are open before the first call.

The time of the server is in all times: from the end of a request to the first byte of its reply in
the capture. If the capture has the beginning of the connection, the time from SYN to its answer is
taken off: that is the way from where the capture was made to the server and back.

The last table has 30 days: the capture once, and the rest as STEADY. With --price-per-mb also what
that costs, for each million bytes. By fewer than 20 calls, or less than a minute, nothing is said
about 30 days.

--html writes a page with charts that needs nothing else, for a browser. It appears when it is
complete.

Files are read twice; from a pipe or stdin (-), they are copied first. Memory does not grow with
them.
Exit code 1: there is no plain SOAP. Exit code 5: something is missing (packets, the end of the
file); the rest is estimated.`,
		Example: `  hhfr estimate plain.pcapng
  hhfr estimate plain.pcapng --link gprs,rtt=1s --price-per-mb 0.40
  hhfr estimate plain.pcapng --html estimate.html -o json`,
		Args: command.Takes("FILE…"),
		RunE: func(c *cobra.Command, args []string) error {
			o.files = args
			return runEstimate(c.Context(), g, &o)
		},
	}
	f := c.Flags()
	f.StringVar(&o.link, "link", "", "one link, instead of all: "+strings.Join(link.Names(), ", ")+
		", with changes after it: gprs,rtt=1s,rate=64k,queue=12000")
	f.Float64Var(&o.price, "price-per-mb", 0, "price of a million bytes on the link, in any currency")
	o.schema.Flags(f)
	flags.ClientPerAddress(f, &o.perAddress)
	f.IntVar(&o.zstdLevel, "zstd-level", 3, "of the tunnel and of dcz: 1 to 11, the best that there is here; 3, 7 and "+
		"11 differ")
	f.StringVar(&o.html, "html", "", "write a page with charts to this `FILE`")
	flags.Lenient(f, &o.lenient)
	command.OutputFlag(c, &o.output)
	return c
}

// config returns what is to be estimated. Errors are of the command line.
func (o *estimateOptions) config() (cfg estimate.Config, err error) {
	if !(o.price >= 0) || math.IsInf(o.price, 0) {
		return cfg, exit.Usagef("", "--price-per-mb %v: a price is a number from 0 on", o.price)
	}
	if o.zstdLevel < 1 || o.zstdLevel > 11 {
		return cfg, exit.Usagef("", "--zstd-level %d: levels are 1 to 11", o.zstdLevel)
	}
	names := link.Names()
	if o.link != "" {
		names = []string{o.link}
	}
	for _, name := range names {
		p, err := link.ParseProfile(name)
		if err != nil {
			return cfg, exit.Usage(err, "")
		}
		p.Name = name
		if _, err := link.NewLine(p); err != nil {
			return cfg, exit.Usage(err, "estimates are of connections")
		}
		cfg.Links = append(cfg.Links, p)
	}
	cfg.PricePerMB, cfg.PerAddress, cfg.ZstdLevel = o.price, o.perAddress, o.zstdLevel
	return cfg, nil
}

// enoughToEstimate is what estimating needs, however long the captures are, in bytes: most of it
// for the windows of zstd.
const enoughToEstimate = 128 << 20

func runEstimate(ctx context.Context, g *command.Global, o *estimateOptions) (err error) {
	cfg, err := o.config()
	if err != nil {
		return err
	}
	described, err := description.Read(ctx, g, o.schema)
	if err != nil {
		return err
	}
	cfg.Description = described.Messages()
	defer input.Frugal(enoughToEstimate)()
	in, err := input.OpenSources(ctx, g, o.files, "a capture", true)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }()
	shown := in.Watch(g, estimate.Passes)
	defer shown.End()
	var inputs []estimate.Capture
	for _, one := range in.List {
		inputs = append(inputs, estimate.Capture{Name: one.Name, Octets: one.Octets.(io.ReadSeeker)})
	}
	r, stats, err := estimate.Run(ctx, cfg, inputs...)
	shown.End()
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(err, estimate.ErrNoSOAP):
		return o.nothing(ctx, g, in)
	case errors.Is(err, estimate.ErrManyServers):
		return exit.With(exit.Failed, err,
			"cut the capture to those of one link: tshark -r IN -Y 'ip.addr == …' -w OUT")
	case err != nil:
		return err
	}
	if err := o.print(g, r); err != nil {
		return err
	}
	return o.verdict(g, r, &stats)
}

// EstimateReport is the JSON of estimate.
type EstimateReport struct {
	Version int              `json:"version"` // 1
	Report  *estimate.Report `json:"report"`  // the estimate
}

// print prints the estimate, and writes the page.
func (o *estimateOptions) print(g *command.Global, r *estimate.Report) (err error) {
	if o.html != "" {
		content := page.Content{Files: o.files, Report: r, PricePerMB: o.price}
		// Others may read the page; a web server, for one.
		err := input.WriteWhole(g, o.html, 0o666, func(w io.Writer) error { return page.Write(w, content) })
		if err != nil {
			return fmt.Errorf("--html: %w", err)
		}
	}
	if o.output == "json" {
		return g.JSON(EstimateReport{1, r})
	}
	_, err = io.WriteString(g.Out, printing.Lines(newEstimateTable(r, o.price, terminal.Columns(g.Out)).text()))
	return err
}

// verdict says what was left out, and returns an error if that is something missing.
func (o *estimateOptions) verdict(g *command.Global, r *estimate.Report, s *flow.Stats) error {
	g.Note("%s to %s in %.1f s; the server took %.3f s a call", printing.Count(r.Calls, "call"),
		printing.Count(r.Servers, "server"),
		r.Seconds, r.ServerSeconds)
	if r.Others > 0 {
		g.Note("%s without SOAP left out", printing.Count(r.Others, "call"))
	}
	if r.HHFR > 0 {
		g.Warn("%s of hhfr left out: hhfr decode says what is on them", printing.Count(r.HHFR, "connection"))
	}
	if r.Cut > 0 {
		g.Warn("%s without its rest or its reply, or too long, left out", printing.Count(r.Cut, "message"))
	}
	summary.WarnOfGaps(g, s)
	if partial := r.Cut > 0 || s.Truncated || s.Gaps > 0 || s.Evicted > 0 || s.Dropped > 0; partial && !o.lenient {
		return exit.Quiet(exit.Partial)
	}
	return nil
}

// nothing says what captures have instead of plain SOAP.
func (o *estimateOptions) nothing(ctx context.Context, g *command.Global, in *input.Sources) error {
	for _, one := range in.List {
		if _, err := one.Octets.(io.Seeker).Seek(0, io.SeekStart); err != nil {
			return err
		}
	}
	r := capture.NewReader(ctx, capture.DecodeConfig{Starts: true})
	for _, err := range r.Captures(ctx, in.List...) {
		if err != nil {
			return err
		}
	}
	s := r.Summary()
	files := strings.Join(o.files, ", ")
	if len(s.Streams) > 0 {
		return exit.Withf(exit.Failed, "what is on them, hhfr decode shows; estimates are of plain SOAP",
			"%w in %s; found instead: %s", estimate.ErrNoSOAP, files, printing.Count(len(s.Streams), "hhfr stream"))
	}
	if s.Counts().Messages > 0 || s.Partial() {
		summary.WarnOfGaps(g, &s.Stats)
		found := summary.Instead(s)
		if n := s.Counts().Messages; n > 0 {
			found = printing.Count(n, "message") + ", none with both its request and its reply whole"
		}
		return exit.Withf(exit.Partial, "", "%w in %s; found instead: %s", estimate.ErrNoSOAP, files, found)
	}
	return exit.Withf(exit.Failed, "", "%w in %s; found instead: %s", estimate.ErrNoSOAP, files, summary.Instead(s))
}

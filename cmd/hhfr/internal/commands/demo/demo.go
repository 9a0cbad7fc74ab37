// Package demo is hhfr demo.
package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/hhfr/hhfr/cmd/hhfr/internal/command"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/exit"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/network"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/printing"
	"github.com/hhfr/hhfr/internal/demo"
	"github.com/hhfr/hhfr/internal/link"
	"github.com/hhfr/hhfr/pkg/negotiate"
)

// New is the command.
func New(g *command.Global) *cobra.Command {
	var cfg demo.Config
	var output string
	c := &cobra.Command{
		Use:   "demo",
		Short: "The whole thing in a minute on this machine",
		Long: `demo starts a server and a client on this machine, each with a context store of its
own, negotiates, and sends messages modeled on cameras (ONVIF), home gateways (CWMP) and mail (EWS)
to the echo service over the stream, each twice, the second time with other values. It compares the
replies with the requests and prints what traveled.

Then some of the messages go over an emulated thin link, twice as well, in each of four ways: as
plain SOAP over one connection, over a stream, over a stream between peers that have met before, and
through a pair of proxies around the link. The clock runs faster than real time; the times printed
are those of the link. Each time is compared with the time that the session's own bytes and round
trips take, by the link's bandwidth and round trip. A session whose time is more than 10 % off, or
in which computing took more than 5 % of the time, is rerun at half the speed, up to twice.

What went over the link is recorded. The messages are decoded from the captures, rebuilt from the
bytes of the streams and the store, and compared with what was sent. The files stay in --dir.

Exit code 1: a message is not as it was sent, or a time is not that of the link (the machine is too
slow or too busy; try --speed).
With HHFR_SHARED set to a folder with corpus/messages, the messages are those of the corpus.`,
		Example: "  hhfr demo\n  hhfr demo --link edge --dir tour -o json",
		Args:    command.Takes(),
		RunE: func(c *cobra.Command, _ []string) (err error) {
			if cfg.Messages, err = demoMessages(); err != nil {
				return err
			}
			return runDemo(c.Context(), g, cfg, output)
		},
	}
	f := c.Flags()
	network.ClockedLinkFlags(f, &cfg.Link, "gprs", &cfg.Speed)
	f.StringVar(&cfg.Dir, "dir", "", "folder for captures, streams and store; empty: a new one where the system "+
		"keeps temporary files")
	command.OutputFlag(c, &output)
	return c
}

func runDemo(ctx context.Context, g *command.Global, cfg demo.Config, output string) (err error) {
	made := cfg.Dir == ""
	if made {
		if cfg.Dir, err = os.MkdirTemp("", "hhfr-demo-"); err != nil {
			return err
		}
	} else if err := os.MkdirAll(cfg.Dir, 0o755); err != nil {
		return err
	}
	ctx, out, stop := printing.NewPrintout(ctx, g.Out)
	defer stop()
	g.Out = out
	if output == "text" {
		cfg.Each, cfg.EachWay = demoRows(out, len(cfg.Messages)), demoWays(out, cfg)
	}
	r, err := demo.Run(ctx, cfg)
	var profile *link.Error
	switch {
	case err != nil && !errors.Is(err, demo.ErrDifferent) && !errors.Is(err, demo.ErrNotTheLink):
		if out.Err != nil {
			err = out.Err
		}
		if made {
			err = errors.Join(err, os.RemoveAll(cfg.Dir))
		}
		if errors.As(err, &profile) {
			return exit.Usage(err, "")
		}
		return err
	case output == "json":
		if werr := g.JSON(DemoReport{
			1, r.Agreed, r.Same(), cfg.Link, cfg.Dir, r.Rows, demo.Total(r.Rows), r.Ways,
		}); werr != nil {
			return werr
		}
	default:
		demoEnd(g, cfg, r)
	}
	if out.Err != nil {
		return out.Err
	}
	if errors.Is(err, demo.ErrNotTheLink) {
		return exit.With(exit.Failed, err, "see --speed, and what else runs on this machine")
	}
	return err
}

// DemoReport is the JSON of demo.
type DemoReport struct {
	Version int             `json:"version"` // 1
	Session negotiate.Facts `json:"session"` // what was agreed
	// everything came back as it was sent, and is the same in the captures
	Same  bool              `json:"same"`
	Link  string            `json:"link"`  // the profile
	Dir   string            `json:"dir"`   // folder with the files
	Rows  []demo.Row        `json:"rows"`  // the messages
	Total demo.Row          `json:"total"` // of all messages
	Ways  []demo.SessionRun `json:"ways"`  // the sessions over the link
}

const (
	demoHead = "%-31s %9s %6s %8s %8s %6s\n"
	demoLine = "%-31s %9d %6d %8d %8d %6.1f  %s\n"
	wayHead  = "%-28s %6s %8s %5s %6s %8s %4s %5s  %s\n"
	wayLine  = "%-28s %6.0f %8.0f %4.1f%% %6d %8d %4.4g %4.1f%%  %s\n"
)

// demoRows prints the cost of each of many messages as it ends, and then the total.
func demoRows(w io.Writer, many int) func(demo.Row) {
	var rows []demo.Row
	return func(r demo.Row) {
		if rows = append(rows, r); len(rows) == 1 {
			fmt.Fprintln(w, "Over a stream on this machine. 2ND: the next of the kind, with other times, numbers\n"+
				"and ids; RATIO: how many times the bytes of plain SOAP are those.")
			fmt.Fprintf(w, demoHead, "MESSAGE, THERE AND BACK", "SOAP+HEAD", "SHAPES", "HHFR 1ST", "HHFR 2ND", "RATIO")
		}
		same := "same"
		if !r.Same {
			same = "DIFFERENT"
		}
		fmt.Fprintf(w, demoLine, printing.Shorten(r.Name, 31), r.SOAP+r.Heads, r.Shapes, r.First, r.Next, r.Ratio(),
			same)
		if len(rows) == many {
			total := demo.Total(rows)
			fmt.Fprintln(w, strings.TrimRight(fmt.Sprintf(demoLine, "total", total.SOAP+total.Heads, total.Shapes,
				total.First, total.Next, total.Ratio(), ""), " \n"))
		}
	}
}

// demoWays prints a line for each session over the link as it ends.
func demoWays(w io.Writer, cfg demo.Config) func(demo.SessionRun) {
	names := map[string]string{demo.SOAP: "plain SOAP, connection kept", demo.Stream: "hhfr stream",
		demo.Again: "hhfr stream, ends met before", demo.Pair: "plain SOAP, proxies between"}
	begun := false
	return func(way demo.SessionRun) {
		if !begun {
			p, _ := link.ParseProfile(cfg.Link) // the demo has parsed it
			fmt.Fprintf(w, "\nOver the link %s (%g kbit/s, round trip %v), in its own time,\n%s there and back.\n"+
				"COMPUTED: bytes by bandwidth, and round trips; OFF: how far MS is from it.\n"+
				"K: how many times faster the clock ran; CPU: share of the time spent computing.\n"+
				"N: the message from which hhfr is faster than plain SOAP.\n", cfg.Link, float64(p.Bandwidth)/1000,
				p.RTT, printing.Count(way.Messages, "message"))
			fmt.Fprintf(w, wayHead, "WAY", "MS", "COMPUTED", "OFF", "SENT", "RECEIVED", "K", "CPU", "N")
		}
		begun = true
		after := "-"
		switch {
		case way.BreakEven > 0:
			after = fmt.Sprint(way.BreakEven)
		case way.Name != demo.SOAP:
			after = "never"
		}
		if !way.Good() {
			after += "  NOT THE LINK'S"
		}
		fmt.Fprintf(w, wayLine, names[way.Name], way.Millis, way.Expected, 100*way.Off(), way.Sent, way.Received,
			way.Speed, 100*way.CPU, after)
	}
}

// demoEnd prints what the captures showed, and how to look into them.
func demoEnd(g *command.Global, cfg demo.Config, r *demo.TourReport) {
	const line = "%-14s %7s %7s  %s\n"
	store := filepath.Join(cfg.Dir, demo.StoreDir)
	for _, w := range r.Ways {
		switch w.Name {
		case demo.SOAP:
		case demo.Stream:
			fmt.Fprintf(g.Out, "\nWhat went over it, in %s.\n"+
				"AS SENT: messages that decode finds in the capture; REBUILT: from the bytes of the stream and the\n"+
				"store alone. The request that asked for the stream was plain SOAP.\n", cfg.Dir)
			fmt.Fprintf(g.Out, line, "CAPTURE", "AS SENT", "REBUILT", "TO LOOK INTO IT")
			fallthrough
		default:
			look := "hhfr decode " + w.Capture + " --store " + store
			if w.Name == demo.Again {
				look = "hhfr reconstruct " + filepath.Join(w.Octets, "*.bin") + " --store " + store
			}
			sent := 2 * w.Messages
			fmt.Fprintf(g.Out, line, filepath.Base(w.Capture), fmt.Sprintf("%d/%d", w.Found, sent),
				fmt.Sprintf("%d/%d", w.Rebuilt, sent), look)
		}
	}
	g.Note("%s over session %s (%s)", printing.Count(2*len(r.Rows), "message"), r.Agreed.Session,
		r.Agreed.Representation)
	if r.Same() {
		fmt.Fprintln(g.Out, "Every message came back byte for byte, and is so in the captures.\n"+
			"The papers' experiments, beside this machine: hhfr bench --quick")
	}
}

// demoMessages are those of the corpus if there is one, otherwise those built in.
func demoMessages() ([]demo.TourMessage, error) {
	shared := os.Getenv("HHFR_SHARED")
	if shared == "" {
		return demo.Builtin()
	}
	dir := filepath.Join(shared, "corpus", "messages")
	messages, err := demo.Read(os.DirFS(dir), func(path string) bool {
		return !strings.HasSuffix(path, ".wsdl") && !strings.HasSuffix(path, ".xsd")
	})
	if err != nil {
		return nil, exit.Withf(exit.WrongUsage, "unset HHFR_SHARED for the messages built in", "HHFR_SHARED: %s: %w",
			dir, err)
	}
	return messages, nil
}

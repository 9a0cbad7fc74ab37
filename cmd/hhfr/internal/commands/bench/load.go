package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/hhfr/hhfr/cmd/hhfr/internal/command"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/exit"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/printing"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/trust"
	"github.com/hhfr/hhfr/internal/experiment"
	"github.com/hhfr/hhfr/internal/load"
)

const loadHelp = `load sends requests of many clients to a service, checks each answer, and prints the columns of the
phones study: for --for, --repeat times for each number of --clients, by each of --ways. The service
is one of hhfr serve (geoip, echo or sum, by the path of the URL, or --service), or any SOAP service,
with --message FILE and --expect TEXT.

  soap-new   plain SOAP, a connection for each request: what the study measured
  soap-kept  plain SOAP on connections that stay open
  stream     hhfr, one stream for all clients

Without --rate each client sends as soon as it has its answer (a closed loop). With --rate requests
are due at that rate, whatever the answers do (an open loop), and the response time counts from when
a request was due, so that a server that stalls shows it in full. A request that finds --clients
requests in flight waits. Requests that were sent over 10 ms late, or not at all, are counted.

A row does not count when load took over 80 % of its processors' time, when over 1 % of its requests
were sent late or not at all, or when requests of stream went as plain SOAP. It says so.

RESPONSES and SUCCESSFUL, which counts right answers, are means of the repeats, all else is of all
repeats together. AVG EXEC MS is the mean response time, from the first byte sent, or from when the
request was due, to the last byte received; so are P50 to MAX, of requests with the right answer. AVG
SERVER MS is what the service says that it worked, by the field Server-Timing of its answers (hhfr
serve --server-timing); - where it does not say. BYTES are those on the network for each request: of
plain SOAP all, heads included; of a stream what the stream took. Errors are: refused (no
connection), reset (the connection ended early), timed out (--timeout), fault, wrong answer, status
(an HTTP status), and other.

Where nobody takes the first connection nothing is measured, and the exit code is 3. A server has a
limit for one address: hhfr serve takes 1000 clients of it with --max-per-peer 1024.

With --threshold the exit code is 1 if a row, over its repeats, misses it or does not count. Metrics
are p50, p90, p99, p999, mean and max with a time, errors with a percentage, and rate, right answers
a second.`

// loadOptions are the flags.
type loadOptions struct {
	load.Config
	message, mix, arrival string
	thresholds            []string
	save, output          string
	tls                   trust.ClientTLS
	required              []load.Threshold
	at                    *url.URL
}

// studyClients are the load levels of the phones study; at a rate there is one.
var studyClients, rateClients = []int{1, 2, 3, 4, 5, 10, 25}, []int{1000}

func newBenchLoad(g *command.Global) *cobra.Command {
	o := &loadOptions{}
	c := &cobra.Command{
		Use:   "load URL",
		Short: "A service under the requests of many clients",
		Long:  loadHelp,
		Example: `  hhfr bench load http://127.0.0.1:8080/geoip --for 10s --repeat 1
  hhfr bench load http://127.0.0.1:8080/geoip --clients 25 --ways soap-kept,stream --mix valid=90,invalid=5,odd=5
  hhfr bench load http://127.0.0.1:8080/geoip --ways stream --rate 500 --for 30s --threshold 'p99<50ms'
  hhfr bench load http://127.0.0.1:8080/echo --message body.xml --expect world --save load.jsonl`,
		Args: command.Takes("URL"),
		RunE: func(c *cobra.Command, args []string) error {
			if err := o.read(g, args[0], c.Flags().Changed("clients")); err != nil {
				return err
			}
			return o.run(c.Context(), g)
		},
	}
	f := c.Flags()
	f.StringVar(&o.Service, "service", "", strings.Join(load.Services(), ", ")+"; empty: by the path of the URL")
	f.StringVar(&o.message, "message", "", "file with the envelope to send to any other service; needs --expect")
	f.StringVar(&o.Expect, "expect", "", "text that a right answer to --message contains")
	f.StringSliceVar(&o.Ways, "ways", load.WayNames(), "how requests travel: "+strings.Join(load.WayNames(), ", "))
	f.IntSliceVar(&o.Clients, "clients", studyClients, "clients at once; with --rate the most requests in flight, "+
		"1000 unless given")
	f.DurationVar(&o.For, "for", 2*time.Minute, "how long each row is measured")
	f.IntVar(&o.Repeat, "repeat", 3, "how many times each row is measured")
	f.DurationVar(&o.Timeout, "timeout", 10*time.Second, "give up a request after this time")
	f.Float64Var(&o.Rate, "rate", 0, "requests a second to send, whatever the answers do; 0: by the answers")
	f.StringVar(&o.arrival, "arrival", "constant", "when requests of --rate are due: constant or poisson")
	f.StringVar(&o.mix, "mix", "", "weights of requests that are valid, invalid (to be answered by a fault) and odd "+
		"(valid, but unusual); empty: valid=1")
	f.StringArrayVar(&o.thresholds, "threshold", nil, "what each row must reach, as 'p99<50ms', 'errors<1%' or "+
		"'rate>100'; may be given again")
	f.Uint64Var(&o.Seed, "seed", 0, "choice of requests, and of times by --arrival poisson")
	saveFlag(f, &o.save)
	for flag, list := range map[string][]string{
		"service": load.Services(), "ways": load.WayNames(), "arrival": {"constant", "poisson"},
	} {
		complete := cobra.FixedCompletions(list, cobra.ShellCompDirectiveNoFileComp)
		_ = c.RegisterFlagCompletionFunc(flag, complete) // fails only for a flag that does not exist
	}
	// fail only for flags that do not exist
	_ = f.SetAnnotation("message", command.PlaceholderOf, []string{"FILE"})
	_ = f.SetAnnotation("expect", command.PlaceholderOf, []string{"TEXT"})
	o.tls.Flags(f)
	command.OutputFlag(c, &o.output)
	return c
}

// read checks the flags, and reads the files that they name.
func (o *loadOptions) read(g *command.Global, rawURL string, clients bool) (err error) {
	if o.at, err = command.CheckURL("URL", rawURL); err != nil {
		return err
	}
	o.URL = o.at.String()
	if o.Service == "" && o.message == "" {
		o.Service = o.at.Path[strings.LastIndex(o.at.Path, "/")+1:]
	}
	switch {
	case o.message != "" && o.Service != "":
		return exit.Usagef("", "--message is for services that --service does not know")
	case (o.message == "") != (o.Expect == ""):
		return exit.Usagef("", "--message and --expect go together: answers are checked")
	}
	if o.message != "" {
		if o.Message, err = os.ReadFile(o.message); err != nil {
			return exit.Usage(err, "")
		}
	}
	if o.mix != "" {
		if o.Mix, err = load.ParseMix(o.mix); err != nil {
			return exit.Usagef("", "--mix %w", err)
		}
	}
	for _, text := range o.thresholds {
		t, err := load.ParseThreshold(text)
		if err != nil {
			return exit.Usagef("", "--threshold %w", err)
		}
		o.required = append(o.required, t)
	}
	switch o.arrival {
	case "constant", "poisson":
		o.Poisson = o.arrival == "poisson"
	default:
		return exit.Usagef("", "--arrival is constant or poisson, not %s", o.arrival)
	}
	if o.Rate > 0 && !clients {
		o.Clients = rateClients
	}
	if o.TLS, err = o.tls.Config(g.System); err != nil {
		return err
	}
	if err := o.Check(); err != nil {
		return exit.Usage(err, "")
	}
	return nil
}

// LoadReport is the JSON of bench load.
type LoadReport struct {
	Version int                  `json:"version"` // 1
	Rows    []experiment.LoadRow `json:"rows"`    // each repeat
	Missed  []MissedThreshold    `json:"missed,omitempty"`
}

// MissedThreshold is a row that is not as --threshold says.
type MissedThreshold struct {
	Way       string `json:"way"`     // of the row
	Clients   int    `json:"clients"` // of the row
	Threshold string `json:"threshold"`
	Is        string `json:"is"` // what the row has; or why it does not count
}

// loadRun is what is measured so far.
type loadRun struct {
	*loadOptions
	out     io.Writer
	saved   saved
	report  LoadReport
	note    func(format string, args ...any)
	noted   map[string]bool      // transports and kinds of error of which one was told
	repeats []experiment.LoadRow // of the row that is not printed yet
	way     string               // of the row that was printed last
}

func (o *loadOptions) run(ctx context.Context, g *command.Global) (err error) {
	ctx, out, stop := printing.NewPrintout(ctx, g.Out)
	defer stop()
	g.Out = out
	r := &loadRun{loadOptions: o, out: out, note: g.Note, noted: map[string]bool{}}
	r.report.Version, r.report.Rows = 1, []experiment.LoadRow{}
	if err := r.saved.open(ctx, o.save, o.at, o.TLS); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.saved.close()) }()
	o.Each = func(row experiment.LoadRow) error { return r.each(&row) }
	if err = load.Run(ctx, o.Config); errors.Is(err, load.ErrUnreachable) {
		return exit.With(exit.NoPeer, err, exit.UnreachableHint(err))
	}
	r.print()
	if o.output == "json" {
		err = errors.Join(err, g.JSON(r.report))
	}
	for _, m := range r.report.Missed {
		g.Say("%s with %s: --threshold %s is missed: %s", m.Way, printing.Count(m.Clients, "client"), m.Threshold, m.Is)
	}
	switch {
	case out.Err != nil:
		return out.Err
	case err == nil && len(r.report.Missed) > 0:
		return exit.Quiet(exit.Failed)
	}
	return err
}

// each takes a row, and prints it with its other repeats after the last of them.
func (r *loadRun) each(row *experiment.LoadRow) error {
	r.report.Rows = append(r.report.Rows, *row)
	r.repeats = append(r.repeats, *row)
	if err := r.saved.write(experiment.Measured{Load: row}); err != nil {
		return err
	}
	if row.Repeat == r.Repeat {
		r.print()
	}
	return nil
}

// print prints the row of the repeats so far, and checks it.
func (r *loadRun) print() {
	if len(r.repeats) == 0 {
		return
	}
	row := load.Together(r.repeats)
	r.repeats = nil
	for _, t := range r.required {
		is := t.Missed(&row)
		if is == "" && row.Doubt != "" {
			is = row.Doubt
		}
		if is != "" {
			r.report.Missed = append(r.report.Missed, MissedThreshold{row.Way, row.Clients, t.String(), is})
		}
	}
	for _, kind := range slices.Sorted(maps.Keys(row.Examples)) {
		if about := row.Way + ", " + kind; !r.noted[about] {
			r.noted[about] = true
			r.note("%s, the first one: %s", about, printing.Printable(row.Examples[kind]))
		}
	}
	if r.output == "text" {
		loadLine(r.out, &row, r.way == "", r.way != row.Way)
		r.way = row.Way
	}
}

// loadLine prints a row, with the head of the table before the first one.
func loadLine(w io.Writer, r *experiment.LoadRow, first, another bool) {
	const head, line = "%-9s %7s %9s %10s %8s %12s %8s %10s %9s %9s %9s %9s %9s %9s\n",
		"%-9s %7d %9d %10d %7.1f%% %12.2f %8s %10s %9s %9s %9s %9s %9s %9s%s\n"
	if first {
		fmt.Fprintf(w, head, "", "", "TOTAL", "", "", "", "AVG EXEC", "AVG SERVER", "", "", "", "", "BYTES", "BYTES")
		fmt.Fprintf(w, head, "WAY", "CLIENTS", "RESPONSES", "SUCCESSFUL", "ERROR %", "SUCCESSFUL/S", "MS", "MS",
			"P50", "P90", "P99", "MAX", "SENT", "RECEIVED")
	} else if another {
		fmt.Fprintln(w)
	}
	ms := func(v float64) string {
		if r.Successful == 0 || v < 0 {
			return "-"
		}
		return fmt.Sprintf("%.4g", v)
	}
	each := func(bytes int64) string {
		if r.Responses == 0 {
			return "-"
		}
		return fmt.Sprintf("%.1f", float64(bytes)/float64(r.Responses))
	}
	mean := func(all int64) int64 { return (all + int64(r.Repeat)/2) / int64(r.Repeat) }
	fmt.Fprintf(w, line, r.Way, r.Clients, mean(r.Responses), mean(r.Successful), r.ErrorPercent(),
		r.PerSecond(), ms(r.MeanMillis), ms(r.ServerMillis), ms(r.P50Millis), ms(r.P90Millis), ms(r.P99Millis),
		ms(r.MaxMillis), each(r.SentOctets), each(r.ReceivedOctets), loadRemarks(r))
}

// loadRemarks are the errors of a row, of all repeats, with the second in which each kind began,
// what was not sent in time, and why the row does not count.
func loadRemarks(r *experiment.LoadRow) string {
	var b strings.Builder
	for _, kind := range slices.Sorted(maps.Keys(r.Errors)) {
		fmt.Fprintf(&b, "  %s: %d", kind, r.Errors[kind])
		from := slices.IndexFunc(r.Course, func(s experiment.Second) bool { return s.Errors[kind] > 0 })
		if from > 0 {
			fmt.Fprintf(&b, " (from second %d)", from+1)
		}
	}
	if r.Late > 0 {
		fmt.Fprintf(&b, "  sent late: %d", r.Late)
	}
	if r.Unsent > 0 {
		fmt.Fprintf(&b, "  unsent: %d", r.Unsent)
	}
	if r.Doubt != "" {
		b.WriteString("  DOES NOT COUNT: " + r.Doubt)
	}
	return printing.Printable(b.String())
}

package bench

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/hhfr/hhfr"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/command"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/exit"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/printing"
	"github.com/hhfr/hhfr/internal/bench"
	"github.com/hhfr/hhfr/internal/experiment"
	"github.com/hhfr/hhfr/internal/load"
	"github.com/hhfr/hhfr/internal/peer"
	"github.com/hhfr/hhfr/internal/report"
)

// quick measures a little of everything, in half a minute, and prints it beside the papers.
func quick(ctx context.Context, g *command.Global, save string) (err error) {
	ctx, out, stop := printing.NewPrintout(ctx, g.Out)
	defer stop()
	records, m := &saved{}, &report.Measurement{Environment: *environment()}
	if err := records.open(ctx, save, nil, nil); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, records.close()) }()
	g.Note("sessions on an emulated link of 14.4 kbit/s, whose clock runs faster")
	for _, of := range []struct {
		service string
		size, n int
	}{{"concat", 4, 8}, {"sum", 10, 10}} {
		o := &sessionOptions{SessionConfig: bench.SessionConfig{
			Services: []string{of.service}, Sizes: []int{of.size}, Counts: []int{1, of.n}, Link: "14k4",
			Ways: []bench.SessionWay{
				bench.FirstCall, bench.FirstCallQueued, bench.MetQueued, bench.SOAPNew, bench.SOAPKept,
			},
		}}
		o.Each = func(c bench.Cell) error {
			row := o.sessionRow(c)
			m.Sessions = append(m.Sessions, *row)
			return records.write(experiment.Measured{Session: row})
		}
		if _, err := bench.Session(ctx, o.SessionConfig); err != nil && !errors.Is(err, bench.ErrNotTheLink) {
			return err
		}
	}
	g.Note("25 clients of a service of this process, on loopback")
	keep := func(row experiment.LoadRow) error {
		m.Loads = append(m.Loads, row)
		return records.write(experiment.Measured{Load: &row})
	}
	if err := quickLoad(ctx, keep); err != nil {
		return err
	}
	table, chart := report.Beside(m)
	if err := report.Write(out, "text", []report.Section{table}); err != nil {
		return err
	}
	if _, err := fmt.Fprint(out, chart); err != nil {
		return err
	}
	for _, s := range m.Sessions {
		if s.Doubt != "" {
			return exit.Withf(exit.Failed, "see what else runs on this machine",
				"some times do not count, and are missing: %s", s.Doubt)
		}
	}
	return out.Err
}

// quickLoad puts geoip under 25 clients by each transport.
func quickLoad(ctx context.Context, keep func(experiment.LoadRow) error) error {
	services, err := peer.NewServices(peer.GeoIP(peer.DutchRanges()))
	if err != nil {
		return err
	}
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	server := hhfr.Server{Handler: services}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(l) }()
	err = load.Run(ctx, load.Config{
		URL: "http://" + l.Addr().String() + "/geoip", Service: "geoip", Ways: load.WayNames(), Clients: []int{25},
		Repeat: 1, For: 3 * time.Second, Timeout: 10 * time.Second, Within: true, Each: keep,
	})
	return errors.Join(err, server.Close(), <-ended)
}

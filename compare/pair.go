package main

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strconv"

	"github.com/hhfr/hhfr/compare/internal/ends"
	"github.com/hhfr/hhfr/pkg/workload"
)

// proxyArg, with a name and an upstream behind it, makes this program one proxy of a measurement.
const proxyArg = "proxy"

// pairs are measurements of pairs of proxies.
type pairs struct {
	Calls []ends.PairRow `json:"calls"`
	Long  []ends.LongRow `json:"long"`
}

func runProxy(ctx context.Context, args []string, in io.Reader, out io.Writer) error {
	if len(args) != 2 {
		return errors.New(proxyArg + " NAME UPSTREAM")
	}
	return ends.ServeProxy(ctx, args[0], args[1], in, out)
}

func measurePairs(ctx context.Context, in *inputs, o options) (*pairs, error) {
	var p pairs
	var err error
	p.Calls, p.Long, err = ends.MeasurePair(ctx, ends.PairConfig{
		Config:   ends.Config{Args: []string{proxyArg}, Rounds: 5, Slice: 100 * o.slice},
		Messages: in.workloads[callsWorkload],
		Long: []ends.Long{
			{Name: "base64", Body: longBlob(22 << 20)},
			{Name: "records", Body: longRecords(98 << 20)},
		},
	})
	return &p, err
}

// longBlob is an envelope with base64 in it, of so many bytes.
func longBlob(octets int) []byte {
	blob := make([]byte, octets/4*3)
	random := rand.NewChaCha8([32]byte{seed})
	_, _ = random.Read(blob) // never fails
	return envelope([]byte("<blob>" + base64.StdEncoding.EncodeToString(blob) + "</blob>"))
}

// longRecords is an envelope with so many bytes of records, alike in form.
func longRecords(octets int) []byte {
	var some []byte
	for m := range workload.Records(seed, 500) {
		first, last := bytes.Index(m, []byte("<item>")), bytes.LastIndex(m, []byte("</item>"))
		if some = append(some, m[first:last+len("</item>")]...); len(some) >= octets {
			return envelope([]byte("<list>" + string(some) + "</list>"))
		}
	}
	return nil
}

func envelope(body []byte) []byte {
	return fmt.Appendf(nil, `<s:Envelope xmlns:s="http://schemas.xmlsoap.org/soap/envelope/"><s:Body>%s</s:Body>`+
		`</s:Envelope>`, body)
}

func (r *results) writePairs(p *tablePrinter) {
	if r.Pairs == nil {
		return
	}
	p.printf("\nProxies between clients and an echo service, calls of %s: processor time of both proxies, and "+
		"the time of a call, in µs; medians.\n\n", callsWorkload)
	t := cells{{"way", "connections", "processor, µs", "time of a call, µs"}}
	for _, c := range r.Pairs.Calls {
		t = append(t, []string{c.Way, strconv.Itoa(c.Connections), micros(c.Processor), micros(c.P50)})
	}
	p.table(t)
	p.printf("\nLong bodies to a service that reads them; memory is the most that a proxy of the pair had, in MB.\n\n")
	t = cells{{"way", "body", "framed by", "MB/s", "memory"}}
	for _, l := range r.Pairs.Long {
		framing := "Content-Length"
		if l.Chunked {
			framing = "chunks"
		}
		t = append(t, []string{l.Way, l.Body, framing, number(1e3 * float64(l.Octets) / l.Time), megabytes(l.Most)})
	}
	p.table(t)
}

// pairTo is what the pair takes for calls from so many clients, to two reverse proxies.
func pairTo(connections int, of func(ends.PairRow) float64) func(*results) (float64, bool) {
	return func(r *results) (float64, bool) {
		if r.Pairs == nil {
			return 0, false
		}
		var hhfr, other float64
		for _, c := range r.Pairs.Calls {
			switch {
			case c.Connections != connections:
			case c.Way == ends.HHFRPair:
				hhfr = of(c)
			case c.Way == ends.ReversePair:
				other = of(c)
			}
		}
		return hhfr / other, other > 0
	}
}

// slowestLong is the least speed of the pair to that of a stream alone, over all long bodies.
func slowestLong(r *results) (least float64, measured bool) {
	if r.Pairs == nil {
		return 0, false
	}
	var stream float64
	for _, l := range r.Pairs.Long {
		switch l.Way {
		case ends.HHFRClients:
			stream = l.Time
		case ends.HHFRPair:
			if v := stream / l.Time; !measured || v < least {
				least, measured = v, true
			}
		}
	}
	return least, measured
}

func mostOfPair(r *results) (most float64, measured bool) {
	if r.Pairs == nil {
		return 0, false
	}
	for _, l := range r.Pairs.Long {
		if l.Way == ends.HHFRPair {
			most = max(most, l.Most/1e6)
		}
	}
	return most, most > 0
}

// pairGoals limit what a pair of proxies costs.
func pairGoals() (list []goal) {
	for _, n := range ends.Connections {
		list = append(list, goal{15, fmt.Sprintf("pair, %d clients, processor time to two ReverseProxy", n), 0.5, false,
			pairTo(n, func(c ends.PairRow) float64 { return c.Processor })})
	}
	return append(list,
		goal{15, "pair, 1 client, time of a call to two ReverseProxy", 1, false,
			pairTo(1, func(c ends.PairRow) float64 { return c.P50 })},
		goal{15, longWhat, 0.8, true, slowestLong},
		goal{15, "pair, long bodies, resident memory of a half, MB", 64, false, mostOfPair},
	)
}

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/hhfr/hhfr"
)

// flowRow is a reply that a service writes in three parts, each flushed, by an unchanged client and
// server of net/http: over a stream, and plainly. Nanoseconds are medians of whole calls, bytes are
// means of what the server's end writes and reads.
type flowRow struct {
	Calls       int     `json:"calls"`
	HHFR        float64 `json:"hhfr_ns"`
	Plain       float64 `json:"plain_ns"`
	HHFROctets  float64 `json:"hhfr_octets"`
	PlainOctets float64 `json:"plain_octets"`
	Ratio       float64 `json:"ratio"`
}

// threeParts are a reply; the second part ends within a text.
var threeParts = [3]string{
	`<s:Envelope xmlns:s="http://schemas.xmlsoap.org/soap/envelope/"><s:Body><m:feed xmlns:m="urn:example:feed">` +
		`<m:event><m:number>17</m:number><m:text>one</m:text></m:event>`,
	`<m:event><m:number>4</m:number><m:text>half of a te`,
	`xt</m:text></m:event></m:feed></s:Body></s:Envelope>`,
}

func writeThree(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/xml")
	for _, part := range threeParts {
		if _, err := io.WriteString(w, part); err != nil {
			return
		}
		if err := http.NewResponseController(w).Flush(); err != nil {
			return
		}
	}
}

// octetListener counts what its connections carry.
type octetListener struct {
	net.Listener
	octets *atomic.Int64
}

func (l octetListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return writeCounter{c, l.octets}, nil
}

type writeCounter struct {
	net.Conn
	octets *atomic.Int64
}

func (c writeCounter) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.octets.Add(int64(n))
	return n, err
}

func (c writeCounter) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	c.octets.Add(int64(n))
	return n, err
}

// measureFlow calls in turns of both ways.
func measureFlow(ctx context.Context) (f *flowRow, err error) {
	const turns, each = 21, 100
	var ends closers
	defer func() { err = errors.Join(err, ends.close()) }()
	plain, err := startFlow(ctx, &ends, false)
	if err != nil {
		return nil, err
	}
	over, err := startFlow(ctx, &ends, true)
	if err != nil {
		return nil, err
	}
	f = &flowRow{Calls: (turns - 1) * each}
	var times [2][]float64
	for turn := range turns {
		for i, w := range []*flowing{over, plain} {
			before := w.octets.Load()
			for range each {
				began := time.Now()
				if err := w.call(ctx); err != nil {
					return nil, err
				}
				if turn > 0 {
					times[i] = append(times[i], float64(time.Since(began)))
				}
			}
			if turn > 0 {
				w.total += w.octets.Load() - before
			}
		}
	}
	if c := over.streams.Counters(); c.Sent.Messages < int64(f.Calls) {
		return nil, fmt.Errorf("%d of %d calls went over a stream", c.Sent.Messages, f.Calls)
	}
	f.HHFR, f.Plain = median(times[0]), median(times[1])
	f.HHFROctets, f.PlainOctets = float64(over.total)/float64(f.Calls), float64(plain.total)/float64(f.Calls)
	f.Ratio = f.HHFR / f.Plain
	return f, nil
}

// flowing is a client of a service.
type flowing struct {
	client  *http.Client
	streams *hhfr.Transport // nil: none
	url     string
	octets  *atomic.Int64
	total   int64
}

func startFlow(ctx context.Context, ends *closers, overStream bool) (*flowing, error) {
	w := &flowing{client: &http.Client{Transport: &http.Transport{}}, octets: new(atomic.Int64)}
	var handler http.Handler = http.HandlerFunc(writeThree)
	if overStream {
		h, rt := &hhfr.Handler{Handler: handler}, &hhfr.Transport{}
		ends.add(h.Close)
		ends.add(rt.Close)
		handler, w.client, w.streams = h, &http.Client{Transport: rt}, rt
	}
	server := httptest.NewUnstartedServer(handler)
	server.Listener = octetListener{server.Listener, w.octets}
	server.Start()
	ends.add(func() error { server.Close(); return nil })
	w.url = server.URL
	return w, w.call(ctx)
}

func (w *flowing) call(ctx context.Context) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, w.url,
		strings.NewReader(threeParts[0]+threeParts[1]+threeParts[2]))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "text/xml")
	resp, err := w.client.Do(req)
	if err != nil {
		return err
	}
	body, err := io.ReadAll(resp.Body)
	if err == nil && string(body) != strings.Join(threeParts[:], "") {
		err = errors.New("a reply did not come as it was written")
	}
	return errors.Join(err, resp.Body.Close())
}

func (r *results) writeFlow(p *tablePrinter) {
	f := r.Flow
	if f == nil {
		return
	}
	p.printf("\nCalls whose replies come in three flushed writes, by net/http with hhfr.Transport and " +
		"hhfr.Handler, and without; µs are medians, bytes both ways.\n\n")
	p.table(cells{{"calls", "µs", "plain µs", "bytes", "plain bytes"},
		{strconv.Itoa(f.Calls), micros(f.HHFR), micros(f.Plain), number(f.HHFROctets), number(f.PlainOctets)}})
}

func flowOf(of func(*flowRow) float64) func(*results) (float64, bool) {
	return func(r *results) (float64, bool) {
		if r.Flow == nil {
			return 0, false
		}
		return of(r.Flow), true
	}
}

// closers end what was started, in reverse order.
type closers []func() error

func (c *closers) add(f func() error) { *c = append(*c, f) }

func (c *closers) close() (err error) {
	for i := len(*c) - 1; i >= 0; i-- {
		err = errors.Join(err, (*c)[i]())
	}
	return err
}

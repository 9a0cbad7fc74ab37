package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	"github.com/hhfr/hhfr/compare/internal/pcap"
	"github.com/hhfr/hhfr/compare/internal/program"
	"github.com/hhfr/hhfr/pkg/workload"
)

// captures is what long captures take.
type captures struct {
	// First are the times until `hhfr decode` printed its first row, the least of some turns.
	First []firstRow `json:"first_row"`
	// Estimates are of captures of plain SOAP of two lengths.
	Estimates []estimated `json:"estimates"`
}

type firstRow struct {
	Capture string        `json:"capture"`
	Octets  int64         `json:"octets"`
	Time    time.Duration `json:"ns"`
}

type estimated struct {
	Octets    int64         `json:"octets"`
	Processor time.Duration `json:"processor_ns"`
	Resident  int64         `json:"resident_octets"`
}

const (
	captureTurns = 3
	// captureClients are those of each conversation, one after the other.
	captureClients = 8
)

// measureCaptures measures with captures of so many bytes: of streams and of plain SOAP to decode,
// and of plain SOAP to estimate, a fourth of it, and all.
func measureCaptures(ctx context.Context, decoded, estimates int64) (c *captures, err error) {
	dir, err := os.MkdirTemp("", "hhfr-compare-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	c = &captures{}
	for _, k := range []struct {
		name string
		make func(io.Writer, int64) error
	}{{"streams", recordings}, {"plain SOAP", conversations}} {
		file, err := captureOf(dir, decoded, k.make)
		if err != nil {
			return nil, err
		}
		row := firstRow{Capture: k.name, Octets: decoded}
		for range captureTurns {
			took, err := untilFirstRow(ctx, file)
			if err != nil {
				return nil, err
			}
			if row.Time == 0 || took < row.Time {
				row.Time = took
			}
		}
		c.First = append(c.First, row)
	}
	for _, octets := range []int64{estimates / 4, estimates} {
		file, err := captureOf(dir, octets, conversations)
		if err != nil {
			return nil, err
		}
		_, used, err := program.Run(ctx, nil, "estimate", file, "-q", "--link", "gprs", "-o", "json")
		if err != nil {
			return nil, err
		}
		c.Estimates = append(c.Estimates, estimated{octets, used.Processor, used.Resident})
	}
	return c, nil
}

// captureOf makes a capture of so many bytes, in place of the one before.
func captureOf(dir string, octets int64, write func(io.Writer, int64) error) (name string, err error) {
	name = filepath.Join(dir, "capture")
	f, err := os.Create(name)
	if err != nil {
		return "", err
	}
	to := bufio.NewWriterSize(f, 1<<20)
	return name, errors.Join(write(to, octets), to.Flush(), f.Close())
}

// recordings writes the recording of a session again and again, each time from another port.
func recordings(to io.Writer, octets int64) error {
	checkout, err := program.Checkout()
	if err != nil {
		return err
	}
	one, err := os.ReadFile(filepath.Join(checkout, "testdata", "pcap", "session.pcapng"))
	if err != nil {
		return err
	}
	addresses := []byte{127, 0, 0, 1, 127, 0, 0, 1} // of the two ends, before their ports
	first := bytes.Index(one, addresses)
	if first < 0 {
		return errors.New("session.pcapng has no packet on the loopback")
	}
	from, at := one[first+8:first+10], one[first+10:first+12]
	forth, back := slices.Concat(addresses, from, at), slices.Concat(addresses, at, from)
	port := uint16(1024)
	for written := int64(0); err == nil && written < octets; written += int64(len(one)) {
		port = max(port+1, 1024)
		mine := binary.BigEndian.AppendUint16(nil, port)
		next := bytes.ReplaceAll(one, forth, slices.Concat(addresses, mine, at))
		_, err = to.Write(bytes.ReplaceAll(next, back, slices.Concat(addresses, at, mine)))
	}
	return err
}

// conversations writes a capture of calls in plain SOAP, of clients that call in turn.
func conversations(to io.Writer, octets int64) error {
	counted := &countingWriter{to: to}
	c := pcap.New(counted)
	var callers []*captureClient
	for i, kind := range workload.Conversations() {
		for n := range captureClients {
			next, stop := iter.Pull2(kind.Calls(uint64(n)))
			defer stop()
			callers = append(callers, &captureClient{next: next, closed: kind.Closed,
				client: netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, byte(i), byte(n)}), 1024),
				server: netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, 100, byte(i)}), 80)})
		}
	}
	now := time.Date(2026, 3, 14, 9, 0, 0, 0, time.UTC)
	for counted.written < octets {
		for _, one := range callers {
			one.call(c, now)
			now = now.Add(100 * time.Millisecond)
		}
	}
	return c.Err()
}

// captureClient is a client of a capture.
type captureClient struct {
	next           func() ([]byte, []byte, bool)
	closed         bool // each call has a connection
	client, server netip.AddrPort
	conn           *pcap.Conn
}

func (k *captureClient) call(c *pcap.Capture, now time.Time) {
	if k.conn == nil {
		k.client = netip.AddrPortFrom(k.client.Addr(), max(k.client.Port()+1, 1024))
		k.conn = c.Open(now, k.client, k.server)
	}
	request, reply, _ := k.next()
	k.conn.Said(now, 0, request)
	k.conn.Said(now.Add(time.Millisecond), 1, reply)
	if k.closed {
		k.conn.End(now.Add(2*time.Millisecond), 0)
		k.conn.End(now.Add(2*time.Millisecond), 1)
		k.conn = nil
	}
}

type countingWriter struct {
	to      io.Writer
	written int64
}

func (c *countingWriter) Write(p []byte) (int, error) {
	c.written += int64(len(p))
	return c.to.Write(p)
}

// untilFirstRow is how long `hhfr decode` takes until its first row is there, from its start on.
func untilFirstRow(ctx context.Context, file string) (took time.Duration, err error) {
	path, err := program.Path()
	if err != nil {
		return 0, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, "decode", file, "-q")
	out, err := cmd.StdoutPipe()
	if err != nil {
		return 0, err
	}
	began := time.Now()
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	rows := bufio.NewReader(out)
	heading, err := rows.ReadSlice('\n')
	if err == nil && !bytes.HasPrefix(heading, []byte("NUMBER")) {
		err = fmt.Errorf("hhfr decode: %q is no heading", heading)
	}
	if err == nil {
		_, err = rows.ReadSlice('\n')
	}
	took = time.Since(began)
	cancel()
	_ = cmd.Wait() // it was killed
	return took, err
}

func (r *results) writeCaptures(p *tablePrinter) {
	if r.Captures == nil {
		return
	}
	p.printf("\nLong captures: the time until hhfr decode prints the first row, the least of %d turns, and what hhfr "+
		"estimate takes of plain SOAP with --link gprs.\n\n", captureTurns)
	t := cells{{"first row of", "MB", "ms"}}
	for _, row := range r.Captures.First {
		t = append(t, []string{row.Capture, megabytes(float64(row.Octets)), number(row.Time.Seconds() * 1e3)})
	}
	p.table(t)
	p.printf("\n")
	t = cells{{"estimate", "MB", "processor s", "s for a GB", "resident MB"}}
	for _, row := range r.Captures.Estimates {
		t = append(t, []string{"plain SOAP", megabytes(float64(row.Octets)), number(row.Processor.Seconds()),
			number(row.perGB()), megabytes(float64(row.Resident))})
	}
	p.table(t)
}

func (e *estimated) perGB() float64 { return e.Processor.Seconds() / float64(e.Octets) * 1e9 }

func captureGoals() []goal {
	first := func(name string) func(*results) (float64, bool) {
		return func(r *results) (float64, bool) {
			if r.Captures == nil {
				return 0, false
			}
			for _, row := range r.Captures.First {
				if row.Capture == name {
					return row.Time.Seconds() * 1e3, true
				}
			}
			return 0, false
		}
	}
	last := func(of func(all []estimated) float64) func(*results) (float64, bool) {
		return func(r *results) (float64, bool) {
			if r.Captures == nil {
				return 0, false
			}
			return of(r.Captures.Estimates), true
		}
	}
	return []goal{
		{34, "decode of 1 GB of streams, ms to the first row", 200, false, first("streams")},
		{34, "decode of 1 GB of plain SOAP, ms to the first row", 200, false, first("plain SOAP")},
		{34, estimateWhat, 100, false, last(func(all []estimated) float64 { return all[len(all)-1].perGB() })},
		{34, "estimate, resident memory of a capture to that of its fourth", 1.25, false,
			last(func(all []estimated) float64 {
				return float64(all[len(all)-1].Resident) / float64(all[0].Resident)
			})},
	}
}

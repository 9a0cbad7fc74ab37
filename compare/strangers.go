package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"

	"github.com/hhfr/hhfr/internal/codec/binary"
	"github.com/hhfr/hhfr/internal/wire"
	"github.com/hhfr/hhfr/pkg/ctxstore"
	"github.com/hhfr/hhfr/pkg/ctxstore/memory"
)

// strangers is the cost of messages of never-repeating kinds: processor time per message, forwarded
// as HTTP requests, as they are and split before.
type strangers struct {
	Messages int     `json:"messages"`
	Plain    float64 `json:"plain_us"`
	HHFR     float64 `json:"hhfr_us"`
	Ratio    float64 `json:"ratio"`
	Added    float64 `json:"added_octets_most"`
}

// stranger is a message of a kind of its own.
func stranger(i int) []byte {
	return fmt.Appendf(nil, `<s:Envelope xmlns:s="http://schemas.xmlsoap.org/soap/envelope/"><s:Body><k%d>%s</k%d>`+
		`</s:Body></s:Envelope>`, i, strings.Repeat("<line><a>1</a><b>two</b></line>", 20), i)
}

// measureStrangers forwards HTTP requests from one loopback connection to another, in turns of both
// ways; medians are taken over them. The first turn, in which the learner still learns, is left
// out.
func measureStrangers(ctx context.Context) (*strangers, error) {
	const turns, each = 21, 2000
	in, from, err := loopback(ctx)
	if err != nil {
		return nil, err
	}
	to, out, err := loopback(ctx)
	if err != nil {
		return nil, err
	}
	coder := binary.NewBook(ctxstore.Shapes{Store: memory.New(memory.Config{})}).Coder(binary.Options{})
	requests := make(chan [][]byte)
	done := make(chan error, 2)
	go func() {
		var err error
		for batch := range requests {
			for _, m := range batch {
				_, werr := in.Write(append([]byte(plainHead(len(m))), m...))
				err = errors.Join(err, werr)
			}
		}
		done <- errors.Join(err, in.Close())
	}()
	go func() {
		_, err := io.Copy(io.Discard, out)
		done <- errors.Join(err, out.Close())
	}()
	r := &strangers{}
	plain := func(m []byte) error { _, err := to.Write(m); return err }
	split := func(m []byte) error {
		octets := 0
		cut := coder.Split(0, 16000, func(_ bool, p wire.Part) error {
			octets += len(p.Content)
			return plain(p.Content)
		})
		err := cut.All(m)
		cut.Free()
		if r.Messages > 2*each {
			r.Added = max(r.Added, float64(octets-len(m)))
		}
		return err
	}
	messages := make([][]byte, each)
	reader := bufio.NewReader(from)
	var times [2][]float64
	for turn := range turns {
		for way, send := range []func([]byte) error{plain, split} {
			for i := range messages {
				r.Messages++
				messages[i] = stranger(r.Messages)
			}
			began := cpuTime()
			requests <- messages
			for range messages {
				if err := forward(reader, send); err != nil {
					return nil, err
				}
			}
			if took := cpuTime() - began; turn > 0 {
				times[way] = append(times[way], float64(took.Nanoseconds())/1e3/each)
			}
		}
	}
	close(requests)
	if err := errors.Join(<-done, to.Close(), <-done, from.Close()); err != nil {
		return nil, err
	}
	r.Plain, r.HHFR = median(times[0]), median(times[1])
	r.Ratio = r.HHFR / r.Plain
	return r, ctx.Err()
}

// forward reads a request and sends its body.
func forward(from *bufio.Reader, send func([]byte) error) error {
	request, err := http.ReadRequest(from)
	if err != nil {
		return err
	}
	body, err := io.ReadAll(request.Body)
	if err != nil {
		return err
	}
	return send(body)
}

// loopback opens a connection and returns both its ends.
func loopback(ctx context.Context) (near, far net.Conn, err error) {
	var listen net.ListenConfig
	l, err := listen.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, nil, err
	}
	defer l.Close()
	var dial net.Dialer
	if near, err = dial.DialContext(ctx, "tcp", l.Addr().String()); err != nil {
		return nil, nil, err
	}
	far, err = l.Accept()
	return near, far, err
}

func (r *results) writeStrangers(p *tablePrinter) {
	s := r.Strangers
	if s == nil {
		return
	}
	p.printf("\n%d messages of never-repeating kinds forwarded over loopback: %.2f µs of processor time a message as "+
		"they are, %.2f µs split, %.2f times as much; at most %.0f bytes added.\n",
		s.Messages, s.Plain, s.HHFR, s.Ratio, s.Added)
}

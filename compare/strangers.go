package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"

	"github.com/hhfr/hhfr"
	"github.com/hhfr/hhfr/compare/internal/program"
)

// strangers is the cost of messages of never-repeating kinds: processor time per message of an
// `hhfr stream` that sends them, as text and in binary, without stages.
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

// measureStrangers sends them in turns of both ways; medians are taken over them.
func measureStrangers(ctx context.Context, turns, each int) (r *strangers, err error) {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	server := &hhfr.Server{Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})}
	served := make(chan error, 1)
	go func() { served <- server.Serve(l) }()
	defer func() { err = errors.Join(err, server.Close(), <-served) }()
	var all bytes.Buffer
	for i := range each {
		all.Write(append(stranger(i), '\n'))
	}
	r = &strangers{Messages: turns * each}
	var took [2][]float64
	for range turns {
		var octets [2]int64
		for i, representation := range []string{"xml", "binary"} {
			out, used, err := program.Run(ctx, bytes.NewReader(all.Bytes()), "stream", "http://"+l.Addr().String()+"/",
				"-", "--one-way", "--require-hhfr", "--representation", representation,
				"--without", "columns,memory,zstd", "-q", "-o", "json")
			if err != nil {
				return nil, err
			}
			if octets[i], err = streamed(out, each); err != nil {
				return nil, err
			}
			took[i] = append(took[i], float64(used.Processor.Nanoseconds())/1e3/float64(each))
		}
		r.Added = max(r.Added, float64(octets[1]-octets[0])/float64(each))
	}
	r.Plain, r.HHFR = median(took[0]), median(took[1])
	r.Ratio = r.HHFR / r.Plain
	return r, ctx.Err()
}

// streamed is what an `hhfr stream` that sent so many messages says that its stream took.
func streamed(out []byte, messages int) (octets int64, err error) {
	lines := bytes.Split(bytes.TrimSpace(out), []byte("\n"))
	var said struct {
		Summary struct {
			Messages, Failed int
			Stream           struct{ Sent int64 } `json:"stream_octets"`
		}
	}
	if err := json.Unmarshal(lines[len(lines)-1], &said); err != nil {
		return 0, fmt.Errorf("hhfr stream: %w", err)
	}
	if s := said.Summary; s.Messages != messages || s.Failed > 0 {
		return 0, fmt.Errorf("hhfr stream sent %d messages of %d, and %d failed", s.Messages, messages, s.Failed)
	}
	return said.Summary.Stream.Sent, nil
}

func (r *results) writeStrangers(p *tablePrinter) {
	s := r.Strangers
	if s == nil {
		return
	}
	p.printf("\n%d messages of never-repeating kinds sent by `hhfr stream`, without stages: %.2f µs of processor "+
		"time a message as text, %.2f µs in binary, %.2f times as much; at most %.0f bytes added.\n",
		s.Messages, s.Plain, s.HHFR, s.Ratio, s.Added)
}

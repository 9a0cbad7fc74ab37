package main

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/xml"
	"errors"
	"io"
	"net"
	"net/http"
	"sync/atomic"

	"github.com/beevik/etree"
	"github.com/tdewolff/parse/v2"
	tdewolff "github.com/tdewolff/parse/v2/xml"

	"github.com/hhfr/hhfr"
)

// The names of contestants, as in the report.
const (
	sending     = "hhfr, sent and received"
	etreeParse  = "etree"
	encodingXML = "encoding/xml"
	tokenizer   = "tdewolff" // the fastest Go tokenizer we could measure
	goBase64    = "base64, both ways"
)

const blobName = "w4-base64"

// contest is all contestants on one workload.
type contest struct {
	name     string
	messages [][]byte
	// messages of one turn: those that fit the second-level cache, so that all contestants find
	// them there
	batch       int
	contestants []contender
	closers
}

// contender does one kind of work on message i.
type contender struct {
	name    string
	garbage bool
	run     func(i int) error
	settle  func() error // waits until the work is done; nil: it is
	times   []float64    // nanoseconds per message, one per round
}

func newContest(ctx context.Context, name string, messages [][]byte) (*contest, error) {
	c := &contest{name: name, messages: messages}
	const cache = 256 << 10
	for n := 0; c.batch < len(messages) && n < cache; c.batch++ {
		n += len(messages[c.batch])
	}
	if err := c.addSending(ctx); err != nil {
		return nil, errors.Join(err, c.close())
	}
	if name == blobName {
		c.addBase64()
	}
	c.addParsers()
	return c, nil
}

func (c *contest) add(name string, garbage bool, run func(i int) error) {
	c.contestants = append(c.contestants, contender{name: name, garbage: garbage, run: run})
}

// addSending adds a client that sends messages one way to a service that reads them, with both ends
// in this process.
func (c *contest) addSending(ctx context.Context) error {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	var sent, octets int64
	var received atomic.Int64
	arrived := make(chan struct{}, 1)
	server := &hhfr.Server{Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		n, _ := io.Copy(io.Discard, r.Body) // what is missing is never settled
		received.Add(n)
		select {
		case arrived <- struct{}{}:
		default:
		}
	})}
	served := make(chan error, 1)
	go func() { served <- server.Serve(l) }()
	c.closers.add(func() error { return errors.Join(server.Close(), <-served) })
	client, err := hhfr.Dial(ctx, "http://"+l.Addr().String()+"/", nil)
	if err != nil {
		return err
	}
	c.closers.add(client.Close)
	settle := func() error {
		for received.Load() < octets {
			select {
			case <-arrived:
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
		return nil
	}
	send := func(i int) error {
		m := c.messages[i]
		octets += int64(len(m))
		sent++
		return client.Send(ctx, &hhfr.Request{Body: bytes.NewReader(m)})
	}
	for i := range c.messages { // until the stream is there and knows the kind
		if err := errors.Join(send(i), settle()); err != nil {
			return err
		}
	}
	if n := client.Counters().Sent.Messages; n < sent-1 {
		return errors.New("messages went without a stream")
	}
	c.contestants = append(c.contestants, contender{name: sending, garbage: true, run: send, settle: settle})
	return nil
}

// addBase64 adds Go's base64 alone, decoding and encoding.
func (c *contest) addBase64() {
	m := c.messages[0]
	end := bytes.LastIndexByte(m[:bytes.LastIndex(m, []byte("="))+1], '>') + 1
	text := m[end : end+bytes.IndexByte(m[end:], '<')]
	octets, back := make([]byte, base64.StdEncoding.DecodedLen(len(text))), make([]byte, len(text))
	c.add(goBase64, false, func(int) error {
		n, err := base64.StdEncoding.Decode(octets, text)
		base64.StdEncoding.Encode(back, octets[:n])
		return err
	})
}

// addParsers adds the parsers of others.
func (c *contest) addParsers() {
	c.add(etreeParse, true, func(i int) error { return etree.NewDocument().ReadFromBytes(c.messages[i]) })
	c.add(encodingXML, true, func(i int) error {
		d := xml.NewDecoder(bytes.NewReader(c.messages[i]))
		for {
			if _, err := d.RawToken(); errors.Is(err, io.EOF) {
				return nil
			} else if err != nil {
				return err
			}
		}
	})
	// with space for the byte that the lexer puts after a message: otherwise it copies
	roomy := make([][]byte, len(c.messages))
	for i, m := range c.messages {
		roomy[i] = append(make([]byte, 0, len(m)+1), m...)
	}
	c.add(tokenizer, true, func(i int) error {
		in := parse.NewInputBytes(roomy[i])
		defer in.Restore()
		l := tdewolff.NewLexer(in)
		for {
			if kind, _ := l.Next(); kind == tdewolff.ErrorToken {
				if err := l.Err(); !errors.Is(err, io.EOF) {
					return err
				}
				return nil
			}
		}
	})
}

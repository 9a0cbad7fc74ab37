package hhfr

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"

	"github.com/hhfr/hhfr/internal/capture"
	"github.com/hhfr/hhfr/pkg/ctxstore"
	"github.com/hhfr/hhfr/pkg/negotiate"
)

// Decode returns the messages of a capture (pcap or pcapng, also compressed by gzip) as they were
// sent: those of hhfr streams and plain SOAP, as they become whole. store has the shapes and
// sessions that the capture lacks; nil: none. An input that is an [io.Seeker], such as a file, is
// read twice, so that every message comes with the result of its checks (Message.Err).
//
// An error is an *[Error] of code Malformed, and the last element: the input is no capture, is
// broken, or has no message. Of a capture that is cut off or lacks packets, Decode returns what is
// there.
func Decode(in io.Reader, store ctxstore.Store) iter.Seq2[*Message, error] {
	return func(yield func(*Message, error) bool) {
		if in == nil {
			yield(nil, &Error{Code: Malformed, Err: errors.New("no input")})
			return
		}
		ctx := context.Background()
		r := capture.NewReader(ctx, capture.DecodeConfig{Store: store})
		found := false
		for event, err := range r.Captures(ctx, capture.Input{Octets: in}) {
			switch {
			case err != nil:
				yield(nil, &Error{Code: Malformed, Err: err})
				return
			case event.Message == nil:
				continue
			}
			found = true
			if !yield(decoded(event.Message), nil) {
				return
			}
		}
		if !found {
			yield(nil, &Error{Code: Malformed, Err: capture.ErrNothing})
		}
	}
}

// decoded converts a message of a capture.
func decoded(d *capture.Decoded) *Message {
	m := &Message{
		OneWay: d.OneWay, Exchange: d.Number, Time: d.First, From: d.Src, To: d.Dst, Body: d.Reader(), Err: unsound(d),
	}
	if d.HHFR {
		m.Session = d.SessionString()
	}
	head := d.Head
	switch {
	case head == nil && d.Reply:
		head = negotiate.DefaultReplyHead()
	case head == nil:
		head = defaultRequest
	}
	m.describe(head)
	if d.Head == nil {
		m.Target = "" // the session's URL has it, and only the context knows that
	}
	return m
}

var defaultRequest = negotiate.DefaultRequestHead("/")

// unsound is the reason why a message is not as it was sent; nil if it is.
func unsound(d *capture.Decoded) error {
	if d.Whole() {
		return nil
	}
	err := errors.New(d.State.String())
	if d.Why != "" {
		err = fmt.Errorf("%w: %s", err, d.Why)
	}
	return &Error{Code: Malformed, Err: err}
}

package demo

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/hhfr/hhfr/internal/session"

	"github.com/hhfr/hhfr/internal/peer"
	"github.com/hhfr/hhfr/internal/sender"
	"github.com/hhfr/hhfr/pkg/negotiate"
	"github.com/hhfr/hhfr/pkg/streamer"
)

// Row is the cost of one message. Bytes of HHFR are those of its data frames in both directions,
// framing included; Shapes are those of the shapes sent for it the first time.
type Row struct {
	Name   string `json:"name"`               // of the message
	SOAP   int64  `json:"envelope_octets"`    // envelopes, in both directions
	Heads  int64  `json:"http_head_octets"`   // heads that plain SOAP would add, in both directions
	Shapes int64  `json:"shape_octets"`       // shapes sent for it the first time
	First  int64  `json:"hhfr_first_octets"`  // data frames the first time, in both directions
	Next   int64  `json:"hhfr_second_octets"` // data frames of the next one, in both directions
	Same   bool   `json:"same"`               // what came back is what was sent, both times
}

// Ratio is plain SOAP with its heads, divided by hhfr, for the second message.
func (r Row) Ratio() float64 {
	if r.Next == 0 {
		return 0
	}
	return float64(r.SOAP+r.Heads) / float64(r.Next)
}

// Total sums rows up.
func Total(rows []Row) Row {
	total := Row{Name: "total", Same: true}
	for _, row := range rows {
		total.SOAP, total.Heads, total.Shapes = total.SOAP+row.SOAP, total.Heads+row.Heads, total.Shapes+row.Shapes
		total.First, total.Next, total.Same = total.First+row.First, total.Next+row.Next, total.Same && row.Same
	}
	return total
}

// costs sends each message over one stream on loopback, then the next one of its kind, and adds a
// row for each.
func (t *tour) costs(ctx context.Context) (err error) {
	far, err := t.newSite(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, far.stop()) }()
	near := newStore()
	sess, err := session.Dial(
		ctx,
		far.url(peer.EchoPath),
		session.Config{Store: near, Coders: codersOf(near), RequireHHFR: true},
	)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, sess.Close()) }()
	t.report.Agreed = *sess.Agreed().Facts
	for _, m := range t.Messages {
		row, err := trip(ctx, sess, m)
		if err != nil {
			return fmt.Errorf("%s: %w", m.Name, err)
		}
		if t.Each != nil {
			t.Each(row)
		}
		t.report.Rows = append(t.report.Rows, row)
	}
	return nil
}

// trip sends a message and the next one of its kind, and counts.
func trip(ctx context.Context, sess *session.Session, m TourMessage) (Row, error) {
	row := Row{Name: strings.TrimSuffix(filepath.Base(m.Name), ".xml"), Same: true, SOAP: 2 * int64(len(m.Body))}
	head, err := sender.RequestHead(peer.EchoPath, m.Body, "", nil)
	if err != nil {
		return row, err
	}
	for i, m := range []TourMessage{m, changed(m)} {
		octets := [...]*int64{&row.First, &row.Next}[i]
		before := sess.Stream().Stats()
		reply, err := sess.Call(ctx, &streamer.Message{Head: head, Body: bytes.NewReader(m.Body)})
		if err != nil {
			return row, err
		}
		body, err := reply.ReadAll(1 << 30)
		if err != nil {
			return row, err
		}
		row.Same = row.Same && bytes.Equal(body, m.Body)
		after := sess.Stream().Stats()
		*octets = after.Sent.Data.Octets - before.Sent.Data.Octets +
			after.Received.Data.Octets - before.Received.Data.Octets
		row.Shapes += after.Sent.Shape.Octets - before.Sent.Shape.Octets +
			after.Received.Shape.Octets - before.Received.Shape.Octets
		if i == 0 {
			replyHead := reply.Head
			if replyHead == nil {
				replyHead = negotiate.DefaultReplyHead()
			}
			row.Heads = int64(len(head) + len(replyHead))
		}
	}
	return row, nil
}

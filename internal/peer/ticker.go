package peer

import (
	"bytes"
	"context"
	"strconv"
	"time"

	"github.com/hhfr/hhfr/pkg/clock"
	"github.com/hhfr/hhfr/pkg/soap"
	"github.com/hhfr/hhfr/pkg/streamer"
)

// TickerPath is where [Ticker] stands.
const TickerPath = "/ticker"

// Ticker sends server-initiated messages: one-way messages with a tick to each session negotiated
// at its path, one per interval. A request, which is all that plain SOAP has, is answered with the
// next tick. Ticks are counted from 1, one interval after the ticker was made; a link too slow for
// all of them gets some.
func Ticker(c clock.Clock, interval time.Duration) Service {
	if c == nil {
		c = clock.Real()
	}
	if interval <= 0 {
		interval = time.Second
	}
	t := &ticker{clock: c, interval: interval, start: c.Now()}
	const values = `<xs:element name="number" type="xs:unsignedLong"/><xs:element name="time" type="xs:dateTime"/>`
	service := (&wrappedOperation{
		name:          "ticker",
		documentation: "Answers with the next tick; over a stream the element tick also comes without a request.",
		reply:         values,
		types: `<xs:element name="tick"><xs:complexType><xs:sequence>` + values +
			`</xs:sequence></xs:complexType></xs:element>`,
		answer: t.next,
	}).service()
	service.Attend = t.attend
	return service
}

type ticker struct {
	clock    clock.Clock
	interval time.Duration
	start    time.Time
}

// wait waits for the next tick, and gives it as elements.
func (t *ticker) wait(ctx context.Context) ([]byte, error) {
	number := t.clock.Since(t.start)/t.interval + 1
	at := t.start.Add(number * t.interval)
	if err := t.clock.Sleep(ctx, at.Sub(t.clock.Now())); err != nil {
		return nil, err
	}
	var b bytes.Buffer
	element(&b, "number", strconv.FormatInt(int64(number), 10))
	element(&b, "time", at.UTC().Format("2006-01-02T15:04:05.000Z"))
	return b.Bytes(), nil
}

func (t *ticker) next(ctx context.Context, e *envelope) (content, error) {
	if _, err := e.values(nil); err != nil {
		return content{}, err
	}
	text, err := t.wait(ctx)
	return content{text: text}, err
}

// attend sends ticks over a stream.
func (t *ticker) attend(ctx context.Context, stream *streamer.Stream) {
	lane := stream.Lane(0)
	for {
		text, err := t.wait(ctx)
		if err != nil {
			return
		}
		var b bytes.Buffer
		open(&b, soap.V11, "tick")
		b.Write(text)
		b.WriteString(closing("tick"))
		if lane.Send(ctx, streamer.NewMessage(nil, b.Bytes())) != nil {
			return // the stream is over, or its peer takes no server-initiated messages
		}
	}
}

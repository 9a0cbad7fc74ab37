package wire_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/frame"
	"github.com/hhfr/hhfr/internal/shape/learn"
	"github.com/hhfr/hhfr/internal/shape/program"
	"github.com/hhfr/hhfr/internal/wire"
)

const allStages = announcing | wire.Plain

// announcing are the stages of streams that announce every shape.
const announcing = wire.Columns | wire.Memory | wire.Zstd

// pair is a direction from a line to a reader that share no shapes, for messages of the kinds of
// a shelf.
type pair struct {
	*line
	r      *reader
	shapes *shelf // of the sender
	came   []byte // what was delivered last
}

func newPair(t testing.TB, cfg wire.EncoderConfig, stages uint64) *pair {
	return newPairTo(t, cfg, stages, wire.DecoderConfig{Shapes: newShelf(), MaxHeld: 1 << 20})
}

func newPairTo(t testing.TB, cfg wire.EncoderConfig, stages uint64, to wire.DecoderConfig) *pair {
	return &pair{line: newLine(t, cfg, stages), r: newReader(to), shapes: newShelf()}
}

// forget has nobody keep what was sent and received.
func (p *pair) forget() {
	clear(p.sent)
	p.r.messages, p.came, p.tape = nil, nil, nil
}

// learn gives the shape of a message.
func (p *pair) learn(message string) *program.Program {
	family, err := learn.NewFamily([]byte(message), true)
	require.NoError(p.t, err)
	s, err := family.Shape()
	require.NoError(p.t, err)
	return p.shapes.Keep(s)
}

// deliver has what was encoded arrive.
func (p *pair) deliver() error {
	p.take()
	p.came = append(p.came[:0], p.tape...)
	p.tape = p.tape[:0]
	rest, err := p.r.read(p.came)
	if err == nil {
		require.Empty(p.t, rest)
	}
	return err
}

// send sends a message by a shape, nil: as text; it gives the segments of its frames as they
// travel. It must arrive.
func (p *pair) send(lane uint64, by *program.Program, message string) (segments [][]byte) {
	p.t.Helper()
	segments = p.put(lane, by, message)
	m := p.arrive()
	require.NoError(p.t, m.err)
	require.True(p.t, m.whole)
	require.Equal(p.t, message, string(m.body))
	return segments
}

// put sends a message that has not arrived yet.
func (p *pair) put(lane uint64, by *program.Program, message string) (segments [][]byte) {
	p.t.Helper()
	from := len(p.tape)
	p.whole(p.begin(lane, false, nil, []byte(message), nil, by))
	for at := from; at < len(p.tape); {
		b := p.tape[at:]
		if b[0] < 0x80 {
			_, n, err := frame.Parse(b, int64(at), 0)
			require.NoError(p.t, err)
			at += n
			continue
		}
		d, n, err := frame.ParseData(b, int64(at), 0)
		require.NoError(p.t, err)
		segment := d.Payload
		if d.First {
			_, number := binary.Uvarint(segment)
			segment = segment[number:]
		}
		segments = append(segments, bytes.Clone(segment))
		at += n
	}
	return segments
}

// arrive has what was sent arrive, and gives the message that came last.
func (p *pair) arrive() *receivedShapes {
	p.t.Helper()
	require.NoError(p.t, p.deliver())
	require.NotEmpty(p.t, p.r.messages)
	return p.r.messages[len(p.r.messages)-1]
}

// sync has a sync travel.
func (p *pair) sync() {
	p.t.Helper()
	p.enc.Sync(p.now)
	require.NoError(p.t, p.deliver())
	v := p.r.verdicts[len(p.r.verdicts)-1]
	require.True(p.t, v.Known && v.Right)
}

// announced lists what the shape frames said that were delivered last.
func (p *pair) announced() (all []frame.Shape) {
	for b := p.came; len(b) > 0; {
		if b[0] >= 0x80 {
			_, n, err := frame.ParseData(b, 0, 0)
			require.NoError(p.t, err)
			b = b[n:]
			continue
		}
		f, n, err := frame.Parse(b, 0, 0)
		require.NoError(p.t, err)
		if s, is := f.(frame.Shape); is {
			all = append(all, s)
		}
		b = b[n:]
	}
	return all
}

// order is a message of one kind.
func order(i int, who string) string {
	const message = `<?xml version="1.0"?><s:Envelope xmlns:s="http://schemas.xmlsoap.org/soap/envelope/"><s:Body><o>` +
		`<n>%d</n><who>%s</who><at>2006-06-11T04:26:%02d.318Z</at></o></s:Body></s:Envelope>`
	return fmt.Sprintf(message, i, who, i%60)
}

// element is a message of a kind that a name tells apart.
func element(name string, i int) string { return fmt.Sprintf("<a><%s>%d</%s></a>", name, i, name) }

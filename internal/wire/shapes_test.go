package wire_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/frame"
	"github.com/hhfr/hhfr/internal/shape"
	"github.com/hhfr/hhfr/internal/shape/learn"
	"github.com/hhfr/hhfr/internal/shape/transit"
	"github.com/hhfr/hhfr/internal/wire"
)

// tight are limits of a peer that keeps so many shapes.
func tight(shapes uint64) frame.Limits {
	l := hello.Limits
	l.MaxShapes = shapes
	return l
}

// Shapes that are like one sent before come close to it.
func TestShapesStandOnOthers(t *testing.T) {
	p := newPair(t, wire.EncoderConfig{}, announcing)
	kind := func(name string) string {
		return `<s:Envelope xmlns:s="http://schemas.xmlsoap.org/soap/envelope/"><s:Body><q:` + name +
			` xmlns:q="urn:example:a-name-of-some-length"><value>1</value></q:` + name + "></s:Body></s:Envelope>"
	}
	send := func(name string) frame.Shape {
		p.send(1, p.learn(kind(name)), kind(name))
		all := p.announced()
		require.Len(t, all, 1)
		require.Equal(t, frame.Full, all[0].Form)
		return all[0]
	}
	first, second := send("First"), send("Second")
	assert.Less(t, len(second.Piece), len(first.Piece)/2)

	stranger := newLine(t, wire.EncoderConfig{}, announcing)
	r := newReader(wire.DecoderConfig{Shapes: newShelf()})
	_, err := r.read(second.AppendTo(stranger.tape))
	assert.ErrorIs(t, err, &wire.Error{Code: wire.BadShape}, "a decoder that was never told of the base")

	held := newReader(wire.DecoderConfig{Shapes: newShelf(), Named: p.shapes.named})
	_, err = held.read(second.AppendTo(stranger.tape))
	assert.NoError(t, err, "one that has it for other reasons")
}

// What comes for a shape and is none ends the direction.
func TestBadShapes(t *testing.T) {
	l := newLine(t, wire.EncoderConfig{}, allStages)
	for name, piece := range map[string][]byte{
		"no packed shape":    []byte("junk"),
		"packed junk":        []byte("\x00junk"),
		"nothing in it":      transit.Pack(nil, nil, nil),
		"a base is lacking":  {0xff, 1, 2, 3, 4, 5, 6, 7, 8, 9},
		"a shape, cut short": transit.Pack(nil, shapeOf(t, "<a>1</a>").Octets(), nil)[:4],
	} {
		f := frame.Shape{Number: 1, Form: frame.Full, Total: uint64(len(piece)), Piece: piece}
		_, err := newReader(wire.DecoderConfig{Shapes: newShelf()}).read(f.AppendTo(slices.Clone(l.tape)))
		assert.ErrorIs(t, err, &wire.Error{Code: wire.BadShape}, name)
	}
}

func shapeOf(t *testing.T, message string) *shape.Shape {
	s, err := learn.FromMessage([]byte(message))
	require.NoError(t, err)
	return s
}

// However few shapes the peer keeps, one more kind takes the place of another: with syncs
// between them, and without.
func TestSmallTables(t *testing.T) {
	for name, sync := range map[string]bool{"syncs": true, "no syncs": false} {
		t.Run(name, func(t *testing.T) {
			to := wire.DecoderConfig{Shapes: newShelf(), MaxShapes: 4}
			p := newPairTo(t, wire.EncoderConfig{Limits: tight(4)}, announcing, to)
			for i := range 40 {
				m := element(fmt.Sprintf("b%d", i), i)
				p.send(1, p.learn(m), m)
				if sync {
					p.sync()
				}
			}
			for _, m := range p.sent {
				assert.False(t, m.Texts())
			}
		})
	}
}

// The octets of shapes are bounded as their number is; one that is longer than the bound goes as
// text.
func TestTablesOfFewOctets(t *testing.T) {
	limits := tight(100)
	long := element("long"+strings.Repeat("er", 200), 1)
	limits.MaxShapeBytes = uint64(len(shapeOf(t, long).Octets())) - 1
	to := wire.DecoderConfig{Shapes: newShelf(), MaxShapes: 100, MaxShapeOctets: int64(limits.MaxShapeBytes)}
	p := newPairTo(t, wire.EncoderConfig{Limits: limits}, announcing, to)
	for i := range 40 {
		m := element(fmt.Sprintf("b%d", i), i)
		p.send(1, p.learn(m), m)
		p.send(1, p.learn(long), long)
	}
	for _, m := range p.sent {
		assert.Equal(t, string(m.body) == long, m.Texts())
	}
}

// A peer that announces more than was said to be kept, or uses what it did not announce, breaks
// the rules.
func TestTablesAreLimited(t *testing.T) {
	l := newLine(t, wire.EncoderConfig{}, 0)
	refer := func(b []byte, number byte) []byte {
		return frame.Shape{Number: uint64(number), Form: frame.Reference, Fingerprint: [32]byte{number}}.AppendTo(b)
	}
	b := l.tape
	for n := range byte(4) {
		b = refer(b, n+1)
	}
	cfg := wire.DecoderConfig{Shapes: newShelf(), MaxShapes: 4, MaxHeld: -1}
	_, err := newReader(cfg).read(refer(b, 2))
	require.NoError(t, err, "a number that stands already")
	_, err = newReader(cfg).read(refer(b, 99))
	require.ErrorIs(t, err, &wire.Error{Code: wire.Limits})

	octets := shapeOf(t, element("a", 1)).Octets()
	piece := transit.Pack(nil, octets, nil)
	define := func(number uint64) []byte {
		return frame.Shape{Number: number, Form: frame.Full, Total: uint64(len(piece)), Piece: piece}.AppendTo(nil)
	}
	few := wire.DecoderConfig{Shapes: newShelf(), MaxShapeOctets: int64(2 * len(octets)), MaxHeld: -1}
	b = slices.Concat(l.tape, define(1), define(2))
	_, err = newReader(few).read(append(b, define(2)...))
	require.NoError(t, err)
	_, err = newReader(few).read(append(b, define(3)...))
	require.ErrorIs(t, err, &wire.Error{Code: wire.Limits})

	first := frame.Data{First: true, Last: true, OneWay: true, NamesLane: true, NamesExchange: true, Lane: 1,
		Exchange: 1,
		Payload:  []byte{99, 'x'}}
	_, err = newReader(cfg).read(first.AppendTo(slices.Clone(l.tape)))
	require.ErrorIs(t, err, &wire.Error{Code: wire.Unannounced})
}

// What a sync does not list takes no room with the peer.
func TestNumbersThatASyncEndsTakeNoRoom(t *testing.T) {
	p := newPairTo(t, wire.EncoderConfig{}, allStages, wire.DecoderConfig{Shapes: newShelf(), MaxShapes: 4})
	for i := range 40 {
		m := element(fmt.Sprintf("b%d", i), i)
		p.send(1, p.learn(m), m)
		if i%4 == 3 {
			p.sync()
		}
	}
}

// A number that was announced on the word of the negotiation is kept however crowded the table
// is: the peer may still ask what it stands for. When it has asked, the number is given up like
// any other.
func TestNumbersThatMayBeAskedForAreKept(t *testing.T) {
	to := wire.DecoderConfig{Shapes: newShelf(), MaxShapes: 4, MaxHeld: 1 << 20}
	p := newPairTo(t, wire.EncoderConfig{Limits: tight(4)}, allStages, to)
	known := p.learn(element("known", 0))
	p.peer.believed[known.Shape().Fingerprint()] = true
	use := func() []uint64 {
		p.put(1, known, element("known", 1))
		require.NoError(t, p.deliver())
		return p.r.lacks
	}
	require.Equal(t, []uint64{1}, use())
	churn := func() (numbers []uint64) {
		for i := range 20 {
			m := element(fmt.Sprintf("b%d", i), i)
			p.put(2, p.learn(m), m)
			p.sync()
			for _, s := range p.announced() {
				numbers = append(numbers, s.Number)
			}
		}
		for i := range 20 {
			m := element(fmt.Sprintf("b%d", i), i)
			p.put(2, p.learn(m), m)
		}
		require.NoError(t, p.deliver())
		for _, s := range p.announced() {
			numbers = append(numbers, s.Number)
		}
		return numbers
	}
	assert.NotContains(t, churn(), uint64(1))
	transfer := p.enc.Lacks(1)
	require.NotNil(t, transfer)
	require.True(t, p.enc.Piece(transfer, p.now))
	assert.Nil(t, p.enc.Lacks(1), "it was told in full")
	require.NoError(t, p.deliver())
	assert.Equal(t, frame.Full, p.announced()[0].Form)
	whole := 0
	for _, m := range p.r.messages {
		require.NoError(t, m.err)
		if m.whole && string(m.body) == element("known", 1) {
			whole++
		}
	}
	assert.Equal(t, 1, whole, "what waited is there")
	assert.Contains(t, churn(), uint64(1), "what was sent in full is given up like any other")
}

// Who asks for a number that stands for nothing any more is told a shape that no message has, so
// that nothing waits for ever.
func TestNumbersOfNothingAreAskedFor(t *testing.T) {
	p := newPair(t, wire.EncoderConfig{}, allStages)
	by := p.learn(element("b", 0))
	p.peer.sure[by.Shape().Fingerprint()] = true
	p.put(1, by, element("b", 1))
	require.NoError(t, p.deliver())
	require.Equal(t, []uint64{1}, p.r.lacks)
	p.sync()
	p.sync()
	require.NoError(t, p.deliver())
	transfer := p.enc.Lacks(1)
	require.NotNil(t, transfer)
	require.True(t, p.enc.Piece(transfer, p.now))
	require.NoError(t, p.deliver())
	require.Empty(t, p.r.messages)
	p.send(1, nil, "the lane goes on")
}

// lists gives the numbers that a sync keeps.
func (p *pair) lists() (numbers []uint64) {
	require.NoError(p.t, p.deliver())
	p.sync()
	f, _, err := frame.Parse(p.came, 0, 0)
	require.NoError(p.t, err)
	for _, s := range f.(frame.Sync).Shapes {
		numbers = append(numbers, s.Number)
	}
	return numbers
}

func TestSyncsKeepWhatWasUsedAgainAndWhatIsOpen(t *testing.T) {
	p := newPair(t, wire.EncoderConfig{}, allStages)
	send := func(kinds string) (announced []frame.Shape) {
		for i, kind := range kinds {
			m := element(string(kind), i)
			p.send(1, p.learn(m), m)
			announced = append(announced, p.announced()...)
		}
		return announced
	}
	send("aabbc")
	by := p.learn(element("d", 0))
	open := p.begin(2, false, nil, []byte(element("d", 1)), nil, by)
	open.bodyLeft = append(open.bodyLeft, segment{})
	require.True(t, p.next(open), "it has a further fragment")
	assert.Equal(t, []uint64{1, 2, 4}, p.lists(), "used more than once, or open")
	p.enc.Drop(&open.Outgoing, frame.Aborted)
	send("bba")
	assert.Equal(t, []uint64{2}, p.lists())
	all := send("abc")
	require.Len(t, all, 2, "what the sync did not list is announced again")
	for _, s := range all {
		assert.Equal(t, frame.Reference, s.Form)
	}
}

// What was announced for content that has yet to come stays, over a sync, and where the table
// has no room for another shape.
func TestAnnouncementsWaitForTheirContent(t *testing.T) {
	to := wire.DecoderConfig{Shapes: newShelf(), MaxShapes: 1}
	p := newPairTo(t, wire.EncoderConfig{Limits: tight(1)}, allStages, to)
	a := p.learn(element("a", 0))
	p.announce(0, &wire.Part{Program: a}, false)
	assert.Equal(t, []uint64{1}, p.lists())
	p.send(1, a, element("a", 1))
	assert.Empty(t, p.announced())
	assert.Empty(t, p.lists(), "it has come, once")
}

// In a small table, the shape of a body does not take the place of that of its head.
func TestBodiesDoNotEndTheirHeads(t *testing.T) {
	to := wire.DecoderConfig{Shapes: newShelf(), MaxShapes: 2, MaxHeld: -1}
	p := newPairTo(t, wire.EncoderConfig{Limits: tight(2)}, announcing, to)
	const head = "POST /a HTTP/1.1\r\nAuthorization: Bearer 17\r\n\r\n"
	s, err := learn.FromHead([]byte(head))
	require.NoError(t, err)
	headBy := p.shapes.Keep(s)
	for i := range 20 {
		body := element(string(rune('a'+i%3)), i)
		m := p.begin(1, false, []byte(head), []byte(body), headBy, p.learn(body))
		p.whole(m)
		got := p.arrive()
		require.NoError(t, got.err)
		require.Equal(t, head+body, string(got.head)+string(got.body))
		require.False(t, m.Texts(), "message %d", i)
	}
}

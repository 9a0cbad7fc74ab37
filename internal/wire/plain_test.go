package wire_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
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

// plainOf gives the plain shape of a message.
func (p *pair) plainOf(message string) *shape.Shape {
	s, err := learn.Plain([]byte(message))
	require.NoError(p.t, err)
	p.shapes.Keep(s)
	return s
}

// What is first of its kind travels as text, and announces its shape; nothing else does. Both ends
// remember its values.
func TestFirstsAnnounceTheirShapesByTheirTexts(t *testing.T) {
	p, before := newPair(t, wire.EncoderConfig{}, allStages), newPair(t, wire.EncoderConfig{}, announcing)
	took := func(p *pair, i int, who string) int {
		by := p.shapes.Keep(p.plainOf(order(i, who)))
		p.send(1, by, order(i, who))
		return len(p.came)
	}
	first, firstBefore := took(p, 1, "somebody at home"), took(before, 1, "somebody at home")
	assert.Empty(t, p.announced())
	assert.Len(t, before.announced(), 1)
	assert.Less(t, first, firstBefore)
	for i := 2; i < 8; i++ {
		n, nBefore := took(p, i, "somebody at home"), took(before, i, "somebody at home")
		assert.LessOrEqual(t, n, nBefore+1, "message %d", i)
		assert.Empty(t, p.announced())
	}
	p.sync()
	before.sync()
	assert.LessOrEqual(t, took(p, 9, "else"), took(before, 9, "else")+1)
	require.Empty(t, p.announced())
}

// Lanes tell nothing of each other but that messages of a kind came.
func TestPlainShapesTellNothingOfOtherLanes(t *testing.T) {
	alone, beside := newPair(t, wire.EncoderConfig{}, allStages), newPair(t, wire.EncoderConfig{}, allStages)
	by, byToo := alone.learn(order(0, "anybody")), beside.learn(order(0, "anybody"))
	alone.send(9, by, order(0, "a kind"))
	beside.send(9, byToo, order(0, "a kind"))
	rnd := rand.New(rand.NewPCG(5, 6))
	for i := range 200 {
		name := fmt.Sprintf("first%d", i%50)
		for range rnd.IntN(2) {
			other := element("other"+name, i)
			beside.send(2, beside.learn(other), other)
			beside.send(2, byToo, order(rnd.IntN(100), "a guess"))
		}
		require.Equal(t, alone.send(1, by, order(i, "a secret")), beside.send(1, byToo, order(i, "a secret")))
	}
}

// A receiver that could not read the text which announces a shape asks for that.
func TestTextsThatAreNotReadAreAskedFor(t *testing.T) {
	for _, also := range []string{"given up", "forgotten"} {
		t.Run(also, func(t *testing.T) {
			to := wire.DecoderConfig{Shapes: newShelf(), MaxHeld: 1 << 20}
			if also == "given up" {
				to.MaxHeld = 100
			}
			p := newPairTo(t, wire.EncoderConfig{}, allStages, to)
			p.send(1, nil, strings.Repeat("a text that the window has ", 4))
			lacking := p.learn("<lacking>1</lacking>")
			p.peer.believed[lacking.Shape().Fingerprint()] = true
			p.put(1, lacking, "<lacking>1</lacking>")
			require.NoError(t, p.deliver())
			require.Len(t, p.r.lacks, 1)
			by := p.shapes.Keep(p.plainOf(order(1, "somebody")))
			p.put(1, by, order(1, "somebody")) // waits behind it
			p.put(2, by, order(2, "else"))     // waits for it
			require.NoError(t, p.deliver())
			if also == "given up" {
				p.put(1, nil, strings.Repeat("more than can wait", 10))
				require.NoError(t, p.deliver())
			}
			for _, number := range p.r.lacks {
				transfer := p.enc.Lacks(number)
				require.NotNil(t, transfer)
				for !p.enc.Piece(transfer, p.now) {
					continue
				}
			}
			require.NoError(t, p.deliver())
			p.send(3, by, order(3, "third"))
			if also != "given up" {
				for _, m := range p.r.messages {
					require.True(t, m.whole)
					require.NoError(t, m.err)
					require.Equal(t, string(p.sent[m.Key].body), string(m.body))
				}
			}
			p.enc.Close(frame.CloseDone, "")
			require.NoError(t, p.deliver())
			require.True(t, p.r.closed)
			v := p.r.verdicts[len(p.r.verdicts)-1]
			require.True(t, v.Right || !v.Known)
		})
	}
}

// Texts that wait have their shapes, whatever their numbers stand for meanwhile: senders gave these
// on before a sync.
func TestNumbersOfTextsThatWait(t *testing.T) {
	p := newPairTo(t, wire.EncoderConfig{}, allStages, wire.DecoderConfig{Shapes: newShelf(), MaxHeld: 1 << 20})
	p.send(1, nil, strings.Repeat("a text that the window has ", 4))
	lacking := p.learn("<lacking>1</lacking>")
	p.peer.believed[lacking.Shape().Fingerprint()] = true
	p.put(1, lacking, "<lacking>1</lacking>")
	by := p.shapes.Keep(p.plainOf(order(1, "somebody")))
	p.put(1, by, order(1, "somebody")) // waits behind it
	p.put(2, by, order(2, "else"))     // waits for it
	require.NoError(t, p.deliver())
	require.Equal(t, []uint64{1}, p.r.lacks)
	other := transit.Pack(nil, p.learn("<other>1</other>").Shape().Octets(), nil)
	p.tape = frame.Shape{Number: 2, Form: frame.Full, Total: uint64(len(other)), Piece: other}.AppendTo(p.tape)
	require.NoError(t, p.deliver())
	transfer := p.enc.Lacks(1)
	require.NotNil(t, transfer)
	require.True(t, p.enc.Piece(transfer, p.now))
	require.NoError(t, p.deliver())
	require.Len(t, p.r.messages, 4)
	for _, m := range p.r.messages {
		require.NoError(t, m.err)
		require.True(t, m.whole)
		require.Equal(t, string(p.sent[m.Key].body), string(m.body))
	}
}

// A number that a text has announced stands for nothing else before the next sync: its receiver may
// ask for the shape by the number alone.
func TestNumbersOfTextsAreKept(t *testing.T) {
	p := newPairTo(t, wire.EncoderConfig{Limits: tight(3)}, allStages, wire.DecoderConfig{Shapes: newShelf(),
		MaxHeld: 1 << 20, MaxShapes: 3})
	texts := 0
	for i := range 12 {
		m := element(fmt.Sprintf("kind%d", i), i)
		by := p.shapes.Keep(p.plainOf(m))
		p.send(1, by, m)
		assert.Empty(t, p.announced(), "a number was given on")
		f, _, err := frame.Parse(p.came, 0, 0)
		if _, sync := f.(frame.Sync); err == nil && sync {
			texts = 0
		}
		texts++
		assert.LessOrEqual(t, texts, 3)
	}
}

// A number that stands for nothing begins a text that has a plain shape, whole, and no other.
func TestMalformedPlainShapes(t *testing.T) {
	data := func(number uint64, text string, last bool) frame.Data {
		return frame.Data{First: true, Last: last, OneWay: true, Exchange: 1,
			Payload: append(binary.AppendUvarint(nil, number), text...)}
	}
	for name, tc := range map[string]struct {
		stages uint64
		f      frame.Data
		code   wire.Code
	}{
		"without the stage": {announcing, data(1, "<a>1</a>", true), wire.Unannounced},
		"not whole":         {allStages, data(1, "<a>1</a>", false), wire.Unannounced},
	} {
		t.Run(name, func(t *testing.T) {
			h := hello
			h.Stages = tc.stages
			r := newReader(wire.DecoderConfig{Shapes: newShelf(), MaxHeld: 1 << 20})
			_, err := r.read(tc.f.AppendTo(h.AppendTo(nil)))
			require.ErrorIs(t, err, &wire.Error{Code: tc.code})
		})
	}
	for _, text := range []string{"", "no XML", "<a>", "<a></b>", "<!DOCTYPE a><a/>", "\xff\xfe<\x00a\x00/\x00>\x00"} {
		h := hello
		h.Stages = allStages
		r := newReader(wire.DecoderConfig{Shapes: newShelf(), MaxHeld: 1 << 20})
		f := data(1, text, true)
		_, err := r.read(f.AppendTo(h.AppendTo(nil)))
		require.NoError(t, err)
		require.ErrorIs(t, r.messages[0].err, &wire.Error{Code: wire.BadShape}, "%q", text)
	}
}

// Plain shapes count as all others do: a table that is full takes none, and who announces more
// breaks a limit.
func TestPlainShapesAreBounded(t *testing.T) {
	h := hello
	h.Stages = allStages
	tape := h.AppendTo(nil)
	for i := range uint64(6) {
		text := element(fmt.Sprintf("kind%d", i), 1)
		f := frame.Data{First: true, Last: true, OneWay: true, Exchange: i + 1,
			Payload: append(binary.AppendUvarint(nil, i+1), text...)}
		tape = f.AppendTo(tape)
	}
	_, err := newReader(wire.DecoderConfig{Shapes: newShelf(), MaxHeld: 1 << 20, MaxShapes: 5}).read(tape)
	require.ErrorIs(t, err, &wire.Error{Code: wire.Limits})
	r := newReader(wire.DecoderConfig{Shapes: newShelf(), MaxHeld: 1 << 20, MaxShapeOctets: 100})
	_, err = r.read(tape)
	require.ErrorIs(t, err, &wire.Error{Code: wire.Limits})

	p := newPairTo(t, wire.EncoderConfig{Limits: tight(3)}, allStages, wire.DecoderConfig{Shapes: newShelf(),
		MaxHeld: 1 << 20, MaxShapes: 3})
	for i := range 30 {
		m := element(fmt.Sprintf("kind%d", i), i)
		p.send(uint64(i%2), p.learn(m), m)
	}
}

// Whatever is first, both ends make the same of it, and remember the same: what follows is packed
// on that.
func FuzzPlainShapes(f *testing.F) {
	f.Add([]byte(order(1, "somebody")), []byte(order(2, "else")), uint16(77))
	f.Add([]byte("<a b='1' c=\"x\"> <!-- c --><d/>text</a>"), []byte("<a/>"), uint16(0))
	f.Add([]byte(`<ns1:a xmlns:ns1="u" ns1:b="2006-06-11T04:26:01Z"><c>1.50</c><c>1E5</c></ns1:a>`), []byte("<a>"),
		uint16(3))
	f.Add([]byte(`<a><r i="1"><n>1</n><n/></r><r i="x"><n>2.5</n></r><r i=""><n>z</n></r></a>`),
		[]byte(`<a><r i="1"><n>1</n></r></a>`), uint16(9))
	f.Fuzz(func(t *testing.T, one, two []byte, flip uint16) {
		p := newPair(t, wire.EncoderConfig{}, allStages)
		var tape []byte
		tape = append(tape, p.tape...)
		for _, m := range [][]byte{one, two, one, two} {
			s, err := learn.Plain(m)
			if err != nil || len(m) > 1<<14 {
				continue
			}
			p.send(1, p.shapes.Keep(s), string(m))
			tape = append(tape, p.came...)
		}
		p.enc.Close(frame.CloseDone, "")
		p.take()
		tape = append(tape, p.tape...)
		broken := bytes.Clone(tape)
		broken[int(flip/8)%len(broken)] ^= 1 << (flip % 8)
		r := newReader(wire.DecoderConfig{Shapes: newShelf(), MaxHeld: -1})
		_, _ = r.read(broken)
		for _, m := range r.messages {
			if s := p.sent[m.Key]; m.state == "verified" && m.err == nil {
				require.NotNil(t, s)
				require.Equal(t, string(s.body), string(m.body))
			}
		}
	})
}

// A text goes where it takes less than a shape in full and the content do.
func TestTextsGoWhereTheyTakeLess(t *testing.T) {
	rnd := rand.New(rand.NewPCG(7, 8))
	numbers := new(strings.Builder)
	for range 40 {
		fmt.Fprintf(numbers, "<n>%d</n>", rnd.IntN(1000))
	}
	for message, announced := range map[string]bool{
		"<a>" + numbers.String() + "</a>":                              true,
		"<a><name>somebody</name><street>at home</street><n>1</n></a>": false,
	} {
		p := newPair(t, wire.EncoderConfig{}, allStages)
		by := p.shapes.Keep(p.plainOf(message))
		p.send(1, by, message)
		assert.Equal(t, announced, len(p.announced()) > 0, message)
		without := newPair(t, wire.EncoderConfig{}, announcing)
		without.send(1, without.shapes.Keep(without.plainOf(message)), message)
		assert.LessOrEqual(t, len(p.came), len(without.came))
	}
}

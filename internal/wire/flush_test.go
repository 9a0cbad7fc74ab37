package wire_test

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/frame"
	"github.com/hhfr/hhfr/internal/shape/program"
	"github.com/hhfr/hhfr/internal/wire"
)

// What a flush says of content that waits for its shape counts when that has come, wherever the
// message was cut.
func TestFlushesWaitWithTheirContent(t *testing.T) {
	message := order(17, "somebody")
	for cut := range message {
		p := newPair(t, wire.EncoderConfig{}, allStages)
		by := p.learn(message)
		p.peer.believed[by.Shape().Fingerprint()] = true
		p.announce(0, &wire.Part{Program: by}, false)
		m := wire.Outgoing{Key: frame.Key{Lane: 1, Exchange: 1}, OneWay: true}
		var held *segment
		data := func(last bool) {
			if held != nil {
				body := wire.Part{There: true, First: !m.Begun(), Last: last, Program: by}
				body.Text, body.Content = held.text, held.content
				require.NoError(t, p.enc.Data(&m, &wire.Part{}, &body, last, p.now))
			}
			held = nil
		}
		var s program.Splitter
		s.Reset(by, 4096, false, func(text bool, content []byte) error {
			data(false)
			held = &segment{bytes.Clone(content), text}
			return nil
		})
		require.NoError(t, s.Write([]byte(message[:cut])))
		settled, err := s.Flush(true)
		require.NoError(t, err)
		data(false)
		require.NoError(t, p.enc.Flush(&m, settled, p.now))
		require.NoError(t, p.deliver())
		require.Equal(t, []uint64{1}, p.r.lacks)
		require.Empty(t, p.r.messages)

		transfer := p.enc.Lacks(1)
		require.True(t, p.enc.Piece(transfer, p.now))
		got := p.arrive()
		require.NoError(t, got.err)
		assert.Equal(t, message[:cut], string(got.body))
		require.NoError(t, s.Write([]byte(message[cut:])))
		require.NoError(t, s.Close())
		data(true)
		require.NoError(t, p.deliver())
		require.NoError(t, got.err)
		assert.Equal(t, message, string(got.body))
		assert.True(t, got.whole)
	}
}

// A flush behind content that was given out counts at once, though other messages of the lane wait
// for their shape; and what waits of a message that is given up meanwhile is not given out.
func TestFlushesAndCancelsOnALaneThatWaits(t *testing.T) {
	message := order(17, "somebody")
	for cut := range message {
		p := newPair(t, wire.EncoderConfig{}, allStages)
		by, lacking := p.learn(message), p.learn(element("lacking", 1))
		p.peer.believed[lacking.Shape().Fingerprint()] = true
		p.announce(0, &wire.Part{Program: by}, false)
		p.announce(0, &wire.Part{Program: lacking}, false)
		m := wire.Outgoing{Key: frame.Key{Lane: 1, Exchange: 1}}
		var s program.Splitter
		s.Reset(by, 4096, false, func(text bool, content []byte) error {
			body := wire.Part{There: true, First: !m.Begun(), Program: by, Text: text, Content: content}
			return p.enc.Data(&m, &wire.Part{}, &body, false, p.now)
		})
		require.NoError(t, s.Write([]byte(message[:cut])))
		settled, err := s.Flush(true)
		require.NoError(t, err)
		if !m.Begun() {
			continue
		}
		other := wire.Outgoing{Key: frame.Key{Lane: 1, Exchange: 2}}
		body := wire.Part{There: true, First: true, Program: lacking, Content: []byte("4\x08")}
		require.NoError(t, p.enc.Data(&other, &wire.Part{}, &body, false, p.now))
		require.NoError(t, p.enc.Flush(&m, settled, p.now))
		got := p.arrive()
		require.NoError(t, got.err)
		assert.Equal(t, message[:cut], string(got.body))

		p.enc.Drop(&other, frame.Aborted)
		require.True(t, p.enc.Piece(p.enc.Lacks(2), p.now))
		require.NoError(t, p.deliver())
		assert.Len(t, p.r.messages, 1)
	}
}

// The example of docs/wire-format.md, section 5.5.
func TestFlushOfTheExample(t *testing.T) {
	p := newPair(t, wire.EncoderConfig{}, allStages)
	by := p.learn("<a><b>one</b><c>two</c></a>")
	p.announce(0, &wire.Part{Program: by}, false)
	m := wire.Outgoing{Key: frame.Key{Lane: 1, Exchange: 1}}
	var s program.Splitter
	s.Reset(by, 4096, false, func(text bool, content []byte) error {
		body := wire.Part{There: true, First: !m.Begun(), Program: by, Text: text, Content: content}
		return p.enc.Data(&m, &wire.Part{}, &body, false, p.now)
	})
	for i, step := range []struct {
		writes          string
		settled         int64
		before, flushed string // what the reader has before the flush frame, and behind it
	}{
		{"<a><b>17</b>", 4, "<a><b>17", "<a><b>17</b>"},
		{"<c>", 7, "<a><b>17</b>", "<a><b>17</b><c>"},
		{"x", 0, "<a><b>17</b><c>x", "<a><b>17</b><c>x"},
	} {
		require.NoError(t, s.Write([]byte(step.writes)))
		settled, err := s.Flush(true)
		require.NoError(t, err)
		assert.Equal(t, step.settled, settled, i)
		require.NoError(t, p.deliver())
		assert.Equal(t, step.before, string(p.r.messages[0].body), i)
		require.NoError(t, p.enc.Flush(&m, settled, p.now))
		assert.Equal(t, step.flushed, string(p.arrive().body), i)
	}
}

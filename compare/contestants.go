package main

import (
	"bytes"
	"encoding/base64"
	"encoding/xml"
	"errors"
	"fmt"
	"io"

	"github.com/beevik/etree"
	"github.com/tdewolff/parse/v2"
	tdewolff "github.com/tdewolff/parse/v2/xml"

	"github.com/hhfr/hhfr/internal/shape/learn"
	"github.com/hhfr/hhfr/internal/shape/program"
)

// The names of contestants, as in the report.
const (
	bareSplit   = "bare"
	bareJoin    = "bare join"
	split       = "split"
	join        = "join"
	learning    = "learn"
	etreeParse  = "etree"
	encodingXML = "encoding/xml"
	tokenizer   = "tdewolff" // the fastest Go tokenizer we could measure
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
	room        room
}

// contender does one kind of work on message i.
type contender struct {
	name    string
	garbage bool
	run     func(i int) error
	times   []float64 // nanoseconds per message, one per round
}

func newContest(name string, messages [][]byte) (*contest, error) {
	c := &contest{name: name, messages: messages}
	const cache = 256 << 10
	for n := 0; c.batch < len(messages) && n < cache; c.batch++ {
		n += len(messages[c.batch])
	}
	if err := c.addOurs(); err != nil {
		return nil, err
	}
	if name == blobName {
		c.addBase64()
	} else {
		b := newBare(messages[0])
		c.add(bareSplit, false, func(i int) error { return b.run(messages[i]) })
	}
	c.addParsers()
	return c, nil
}

func (c *contest) add(name string, garbage bool, run func(i int) error) {
	c.contestants = append(c.contestants, contender{name: name, garbage: garbage, run: run})
}

const segmentOctets = 16 << 10

// addOurs adds split and join by a shape that fits all messages, the additional work of stages, and
// learn.
func (c *contest) addOurs() error {
	p, err := programOf(c.messages)
	if err != nil {
		return err
	}
	var s program.Splitter
	var j program.Joiner
	var out []byte
	contents := make([]segments, len(c.messages))
	joinAt := func(i int) (err error) {
		j.Reset(p)
		out = out[:0]
		for k, seg := range contents[i] {
			if out, err = j.Join(out, seg.octets, seg.text, k == len(contents[i])-1); err != nil {
				return err
			}
		}
		return nil
	}
	for i, m := range c.messages {
		s.Reset(p, segmentOctets, true, func(text bool, octets []byte) error {
			contents[i] = append(contents[i], segment{bytes.Clone(octets), text})
			return nil
		})
		if err := errors.Join(s.Split(m), joinAt(i)); err != nil {
			return err
		}
		if !bytes.Equal(out, m) {
			return fmt.Errorf("message %d is not joined to what it was", i+1)
		}
	}
	drop := func(bool, []byte) error { return nil }
	c.add(split, false, func(i int) error {
		s.Reset(p, segmentOctets, true, drop)
		return s.Split(c.messages[i])
	})
	c.add(join, false, joinAt)
	if err := c.addPacking(p, contents); err != nil {
		return err
	}
	c.add(learning, true, func(i int) error {
		learned, err := learn.FromMessage(c.messages[i])
		if err != nil {
			return err
		}
		s.Reset(program.Compile(learned), segmentOctets, true, drop)
		return s.Split(c.messages[i])
	})
	return nil
}

// programOf learns from message after message until one shape fits them all, as a stream would.
func programOf(messages [][]byte) (*program.Program, error) {
	family, err := learn.NewFamily(messages[0], true)
	if err != nil {
		return nil, err
	}
	var p *program.Program
	for _, m := range messages {
		var s program.Splitter
		for widened := false; ; widened = true {
			if p == nil {
				learned, err := family.Shape()
				if err != nil {
					return nil, err
				}
				p = program.Compile(learned)
			}
			s.Reset(p, segmentOctets, true, func(bool, []byte) error { return nil })
			err := s.Split(m)
			if err == nil {
				break
			}
			another, learnErr := learn.NewFamily(m, true)
			if widened || learnErr != nil {
				return nil, errors.Join(err, learnErr)
			}
			if family = family.Widen(another); family == nil {
				return nil, errors.New("messages of more than one kind")
			}
			p = nil
		}
	}
	return p, nil
}

// addBase64 adds Go's base64 alone in place of the bare loop.
func (c *contest) addBase64() {
	m := c.messages[0]
	end := bytes.LastIndexByte(m[:bytes.LastIndex(m, []byte("="))+1], '>') + 1
	text := m[end : end+bytes.IndexByte(m[end:], '<')]
	octets := make([]byte, base64.StdEncoding.DecodedLen(len(text)))
	n, _ := base64.StdEncoding.Decode(octets, text) // a message created here
	raw, back := bytes.Clone(octets[:n]), make([]byte, len(text))
	c.add(bareSplit, false, func(int) error {
		_, err := base64.StdEncoding.Decode(octets, text)
		return err
	})
	c.add(bareJoin, false, func(int) error {
		base64.StdEncoding.Encode(back, raw)
		return nil
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

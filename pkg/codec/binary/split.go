package binary

import (
	"bytes"
	"errors"
	"io"
	"sync"

	"github.com/hhfr/hhfr/pkg/shape"
)

// emitter is what Split hands segments to; see streamer.Coder.
type emitter func(inHead bool, number uint64, text bool, data []byte) error

// splitJob has the buffers of one Split.
type splitJob struct {
	splitter   shape.Splitter
	window     []byte
	content    []byte // segments of the attempt, one behind the other
	ends       []int
	candidates []*shape.Program
	learning   *allowance // of the lane
	collect    func(text bool, segment []byte) error
}

var jobs = sync.Pool{New: func() any {
	j := &splitJob{window: make([]byte, 0, 4096)}
	j.collect = func(_ bool, segment []byte) error {
		j.content = append(j.content, segment...)
		j.ends = append(j.ends, len(j.content))
		return nil
	}
	return j
}}

// Split cuts a message of a lane into segments of at most most octets and hands each to emit, in order, those of the head first. What fits no known shape makes one, or travels as text.
func (c *Coder) Split(lane uint64, head []byte, body io.Reader, most int, emit func(inHead bool, number uint64, text bool, data []byte) error) error {
	j := jobs.Get().(*splitJob)
	defer j.done()
	j.learning = c.learning.of(lane)
	if len(head) > 0 {
		if err := c.splitHead(j, head, most, emit); err != nil {
			return err
		}
	}
	return c.splitBody(j, body, most, emit)
}

// done gives the buffers back, unless one message made them large.
func (j *splitJob) done() {
	j.learning = nil
	if cap(j.window) <= window && cap(j.content) <= 4*window {
		jobs.Put(j)
	}
}

// fits tries a program on a whole part, or on the beginning of one; on success the segments so far are in j.content.
func (j *splitJob) fits(p *shape.Program, part []byte, whole bool, most int) bool {
	j.content, j.ends = j.content[:0], j.ends[:0]
	j.splitter.Reset(p, most, true, j.collect)
	if whole {
		return j.splitter.Split(part) == nil
	}
	return j.splitter.Write(part) == nil
}

// flush hands out the segments gathered.
func (j *splitJob) flush(inHead bool, number uint64, emit emitter) error {
	from := 0
	for _, end := range j.ends {
		if err := emit(inHead, number, false, j.content[from:end]); err != nil {
			return err
		}
		from = end
	}
	return nil
}

func (c *Coder) splitHead(j *splitJob, head []byte, most int, emit emitter) error {
	p := c.find(j, head, true, most, true)
	if p == nil && !c.opt.Text {
		p = c.learnHead(j, head, most)
	}
	if p != nil {
		if n := c.send.take(p); n > 0 {
			defer c.send.release(n)
			return j.flush(true, n, emit)
		}
	}
	return emitText(true, head, most, emit)
}

func emitText(inHead bool, text []byte, most int, emit emitter) error {
	for {
		n := min(len(text), most)
		if err := emit(inHead, 0, false, text[:n]); err != nil {
			return err
		}
		if text = text[n:]; len(text) == 0 {
			return nil
		}
	}
}

// find gives a program of a known shape that fits the part, with its segments in j; nil if there is none, or none that the other end has or that is worth sending for this message.
func (c *Coder) find(j *splitJob, part []byte, whole bool, most int, head bool) *shape.Program {
	if c.opt.Text {
		return nil
	}
	j.candidates = c.book.candidates(j.candidates[:0], part, head)
	var fresh *shape.Program
	for _, p := range j.candidates {
		if !j.fits(p, part, whole, most) {
			continue
		}
		if c.peerHas(p) {
			return c.fitted(j, p)
		}
		if fresh == nil && (head || c.book.worth(p, len(part))) {
			fresh = p
		}
	}
	if fresh == nil || !j.fits(fresh, part, whole, most) {
		return nil
	}
	return c.fitted(j, fresh)
}

func (c *Coder) fitted(j *splitJob, p *shape.Program) *shape.Program {
	c.book.touch(p)
	j.learning.earn()
	return p
}

// learnBody makes a shape of the body, or widens one of its kind, and splits by it; nil if that cannot be, or the learner has done too much for nothing: then the body travels as text.
func (c *Coder) learnBody(j *splitJob, body []byte, whole bool, most int) *shape.Program {
	if !j.learning.spend(len(body)) {
		return nil
	}
	s, old, err := c.book.families.learn(body, whole)
	if err != nil {
		return nil
	}
	p := c.keep(j, s, body, whole, most)
	if old == nil {
		c.counts.learned.Add(1)
	} else {
		c.counts.widened.Add(1)
	}
	if old != nil && (p == nil || !c.peerHas(p) && !c.book.worth(p, len(body))) {
		if s, err = shape.Learn(body); err == nil {
			return c.keep(j, s, body, whole, most)
		}
	}
	if p != nil && old != nil && old.Fingerprint() != s.Fingerprint() {
		c.book.retire(old.Fingerprint())
	}
	return p
}

func (c *Coder) learnHead(j *splitJob, head []byte, most int) *shape.Program {
	if !j.learning.spend(len(head)) {
		return nil
	}
	s, err := shape.LearnHead(head)
	if err != nil {
		return nil
	}
	return c.keep(j, s, head, true, most)
}

// keep stores a shape that was learned and splits by it; nil if either fails.
func (c *Coder) keep(j *splitJob, s *shape.Shape, part []byte, whole bool, most int) *shape.Program {
	p, err := c.book.Keep(s)
	if err != nil {
		c.book.Log.Warn("shape not stored, message travels as text", "shape", s.Fingerprint().URI(), "err", err)
		return nil
	}
	if !j.fits(p, part, whole, most) {
		return nil
	}
	return p
}

func (c *Coder) splitBody(j *splitJob, body io.Reader, most int, emit emitter) error {
	whole, err := j.fill(body, window)
	if err != nil {
		return err
	}
	p := c.find(j, j.window, whole, most, false)
	if p == nil && !c.opt.Text && j.learning.may() {
		if !whole && !insideValue(j.window) {
			if whole, err = j.fill(body, learnWindow); err != nil {
				return err
			}
		}
		if p = c.learnBody(j, j.window, whole, most); p != nil && len(j.window) < shapeWorth {
			c.book.miss(p, len(j.window))
			p = nil
		}
	}
	n := uint64(0)
	if p != nil {
		if n = c.send.take(p); n > 0 {
			defer c.send.release(n)
		}
	}
	if n == 0 {
		c.counts.texts.Add(1)
		return j.asText(body, whole, most, emit)
	}
	if err = j.flush(false, n, emit); err == nil && !whole {
		err = c.stream(j, body, n, emit)
	}
	c.counts.exceptions.Add(int64(j.splitter.Exceptions()))
	return err
}

// insideValue tells that the beginning of a message ends inside a long value: more of that would teach the learner nothing.
func insideValue(beginning []byte) bool {
	return bytes.LastIndexByte(beginning[len(beginning)/2:], '<') < 0
}

// fill reads the message until it ends or upTo octets of it are there.
func (j *splitJob) fill(body io.Reader, upTo int) (whole bool, err error) {
	if upTo == window {
		j.window = j.window[:0]
	}
	if body == nil {
		return true, nil
	}
	for len(j.window) < upTo {
		if len(j.window) == cap(j.window) {
			j.window = append(j.window, 0)[:len(j.window)]
		}
		n, err := body.Read(j.window[len(j.window):min(cap(j.window), upTo)])
		j.window = j.window[:len(j.window)+n]
		if errors.Is(err, io.EOF) {
			return true, nil
		}
		if err != nil {
			return false, err
		}
	}
	return false, nil
}

// stream goes on with a message whose beginning fitted.
func (c *Coder) stream(j *splitJob, body io.Reader, number uint64, emit emitter) error {
	j.splitter.Lenient()
	escaped := false
	j.splitter.Emit(func(text bool, segment []byte) error {
		if text && !escaped {
			escaped = true
			c.counts.texts.Add(1)
		}
		return emit(false, number, text, segment)
	})
	for {
		n, err := body.Read(j.window[:cap(j.window)])
		if err := j.splitter.Write(j.window[:n]); err != nil {
			return err
		}
		if errors.Is(err, io.EOF) {
			return j.splitter.Close()
		}
		if err != nil {
			return err
		}
	}
}

func (j *splitJob) asText(body io.Reader, whole bool, most int, emit emitter) error {
	if whole {
		return emitText(false, j.window, most, emit)
	}
	if len(j.window) > 0 {
		if err := emitText(false, j.window, most, emit); err != nil {
			return err
		}
	}
	for {
		n, err := body.Read(j.window[:min(cap(j.window), most)])
		if n > 0 {
			if err := emit(false, 0, false, j.window[:n]); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

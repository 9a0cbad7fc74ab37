package wire

import (
	"github.com/hhfr/hhfr/internal/shape"
	"github.com/hhfr/hhfr/internal/shape/columns"
	"github.com/hhfr/hhfr/internal/shape/learn"
	"github.com/hhfr/hhfr/internal/shape/program"
	"github.com/hhfr/hhfr/internal/shape/recall"
)

// The first part of its kind announces its plain shape by its text (wire-format section 4.2).

// shapeFrame is what most shape frames have beside the shape, in bytes.
const shapeFrame = 6

// plainPart is a part that is to announce its shape, and its text.
type plainPart struct{ text, content []byte }

// of is the text of a part of the same shape; nil: it announces nothing.
func (a *plainPart) of(p *Part, head bool, most int) []byte {
	if n := len(p.Content); n > 0 && n == len(a.content) && &p.Content[0] == &a.content[0] && p.Last && !p.Text {
		return a.text // content is as it was announced
	}
	return plainText(p, head, most)
}

// sizeOfContent is about what the content of a part would take under its shape, which is new to its
// lane, that has a window.
func sizeOfContent(stages uint64, z *Compression, w *recall.History, p *Part) int {
	content := p.Content
	if stages&Columns != 0 {
		k := packers.Get().(*columns.Packer)
		most := len(content) + packRoom
		content = k.Pack(nil, p.Program, new(columns.Packing), new(columns.Memory), content, true, most)
		packers.Put(k)
	}
	if len(content) < leastLong {
		return len(content)
	}
	return z.sizeRecalled(w, content)
}

// Alone is how many bytes a segment would take in a lane that had nothing before.
func (z *Compression) Alone(segment []byte) int { return z.sizeRecalled(new(recall.History), segment) }

// Values is about what content would take under a program, likewise, with the stages.
func (z *Compression) Values(stages uint64, p *program.Program, content []byte) int {
	return sizeOfContent(stages, z, new(recall.History), &Part{Program: p, Content: content})
}

// plainText joins a part that is whole; nil if its shape is not the plain shape of that, or it is
// longer than most.
func plainText(p *Part, head bool, most int) []byte {
	if !p.Last || p.Text || p.Program == nil {
		return nil
	}
	j := joiners.Get().(*program.Joiner)
	defer joiners.Put(j)
	j.Reset(p.Program)
	text, err := j.Join(nil, p.Content, false, true)
	if err != nil || len(text) > most {
		return nil
	}
	s, err := plainShape(text, head)
	if err != nil || s.Fingerprint() != p.Program.Shape().Fingerprint() {
		return nil
	}
	return text
}

// plainShape is what both ends make of the text of a head or body.
func plainShape(text []byte, head bool) (*shape.Shape, error) {
	if head {
		return learn.FromHead(text)
	}
	return learn.Plain(text)
}

// notedContent is more than what the content of a text may have, in bytes: it is one segment.
const notedContent = 4 * maxExpanded

// noteText has a memory remember the values of a text.
func noteText(p *program.Program, memory *columns.Memory, text []byte, sends bool) {
	s := splitters.Get().(*program.Splitter)
	defer splitters.Put(s)
	var content []byte
	segments := 0
	s.Reset(p, notedContent, true, func(_ bool, segment []byte) error {
		content = append(content, segment...)
		segments++
		return nil
	})
	if s.Split(text) != nil || segments != 1 {
		return
	}
	k := packers.Get().(*columns.Packer)
	k.Note(p, memory, content, sends)
	packers.Put(k)
}

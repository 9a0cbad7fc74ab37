package outgoing

import (
	"bytes"
	"io"
	"os"

	"github.com/hhfr/hhfr/internal/codec/binary"
	"github.com/hhfr/hhfr/internal/unchanging"
	"github.com/hhfr/hhfr/internal/wire"
	"github.com/hhfr/hhfr/pkg/negotiate"
)

const (
	// learnedFiles is the maximum number of FILEs that are examined before negotiating: as many as
	// an offer can name shapes.
	learnedFiles = 1024
	// learnedOctets is the longest FILE that is examined, in bytes: longer ones are learned as they
	// are sent.
	learnedOctets = 1 << 20
)

// Shapes splits the FILEs as they will be sent, without these headers, for the shapes alone, so
// that an offer can name them: a peer that has them need not receive them. A file that cannot be
// read is an error only when it is sent.
func (m *FileMessages) Shapes(book *binary.Book, headers []string, described binary.Describer) (fps [][32]byte) {
	// The first pass learns. Later files may have widened the shapes of earlier ones, so that only
	// the second pass shows which shapes will be used.
	m.split(book, headers, described, func([32]byte) {})
	m.split(book, headers, described, func(fp [32]byte) { fps = append(fps, fp) })
	return fps[:min(len(fps), learnedFiles)]
}

// split splits the FILEs and passes on the name of each shape at its first use.
func (m *FileMessages) split(
	book *binary.Book, headers []string, described binary.Describer, use func(fp [32]byte),
) {
	const segment = 16 << 10 // the result of a segment is not used here
	coder := book.Coder(binary.Options{Refer: true, Description: described})
	used := map[[32]byte]bool{}
	collect := func(_ bool, p wire.Part) error {
		if p.Program == nil || !p.First {
			return nil
		}
		if fp := p.Program.Shape().Fingerprint(); !used[fp] {
			used[fp] = true
			use(fp)
		}
		return nil
	}
	for _, name := range m.Names[:min(len(m.Names), learnedFiles)] {
		body, ok := readShort(name)
		if !ok {
			continue
		}
		one, err := m.of(name, body)
		if err != nil {
			continue
		}
		head := one.Head
		if bytes.Equal(head, negotiate.DefaultRequestHead(m.path)) {
			head = nil // it never travels
		}
		body = unchanging.TakeOut(headers, one.Body)
		split := coder.Split(0, segment, collect)
		if head != nil {
			err = split.Head(head)
		}
		if err == nil {
			err = split.All(body)
		}
		split.Free()
		if err != nil {
			return // memory does not fail, and neither does collect
		}
	}
}

// readShort reads a file if it is regular and short.
func readShort(name string) ([]byte, bool) {
	info, err := os.Stat(name)
	if name == "-" || err != nil || !info.Mode().IsRegular() || info.Size() > learnedOctets {
		return nil, false
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, false
	}
	defer f.Close()
	body, err := io.ReadAll(io.LimitReader(f, learnedOctets+1))
	return body, err == nil && len(body) <= learnedOctets
}

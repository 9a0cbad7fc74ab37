package main

import (
	"bytes"
	"io"
	"net/url"
	"os"

	"github.com/hhfr/hhfr/pkg/codec/binary"
	"github.com/hhfr/hhfr/pkg/negotiate"
	"github.com/hhfr/hhfr/pkg/shape"
)

const (
	// learnedFiles is how many FILEs are looked at before negotiating: as many as an offer names shapes.
	learnedFiles = 1024
	// learnedOctets is the longest FILE that is looked at, in octets: longer ones are learned as they are sent.
	learnedOctets = 1 << 20
)

// learnFiles makes shapes of the FILEs, one for those of a kind, so that the offer can name them: another end that has them need not be sent them.
// A file that cannot be read or learned is left to whoever sends it.
func learnFiles(book *binary.Book, o streamOptions) (fps [][32]byte) {
	path := "/"
	if u, err := url.Parse(o.url); err == nil && u.RequestURI() != "" {
		path = u.RequestURI()
	}
	keep := func(s *shape.Shape, err error) {
		if err != nil || len(fps) == learnedFiles {
			return
		}
		if _, err := book.Keep(s); err == nil {
			fps = append(fps, s.Fingerprint())
		}
	}
	kinds := map[string]*shape.Family{}
	heads := map[string]bool{}
	for _, name := range o.files[:min(len(o.files), learnedFiles)] {
		body, ok := readShort(name)
		if !ok {
			continue
		}
		m, err := outgoing(o, path, name, body)
		if err != nil {
			continue
		}
		// The default head never travels.
		if !heads[string(m.Head)] && !bytes.Equal(m.Head, negotiate.DefaultRequestHead(path)) {
			heads[string(m.Head)] = true
			keep(shape.LearnHead(m.Head))
		}
		f, err := shape.LearnFamily(m.Body, true)
		if err != nil {
			continue
		}
		key := f.Key()
		if before := kinds[key]; before != nil {
			wider := before.Widen(f)
			if wider == nil {
				continue // a kind of its own, in all but name: its shape is made when it is sent
			}
			f = wider
		}
		kinds[key] = f
	}
	for _, f := range kinds {
		keep(f.Shape())
	}
	return fps
}

// readShort reads a file unless it is no regular one, or a long one.
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

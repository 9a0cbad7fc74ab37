package demo

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"

	"github.com/hhfr/hhfr/internal/capture"
	"github.com/hhfr/hhfr/pkg/ctxstore"
	"github.com/hhfr/hhfr/pkg/ctxstore/directory"
)

// StoreDir is the folder of the context store in [Config].Dir.
const StoreDir = "store"

// tell writes the results of a path to files: the capture, the bytes of its stream alone, and the
// shapes. It then reads them with the public tools, and compares.
func (t *tour) tell(ctx context.Context, l *lived) (err error) {
	l.Capture, l.Octets = filepath.Join(t.Dir, l.Name+".pcapng"), filepath.Join(t.Dir, l.Name)
	if err := os.MkdirAll(l.Octets, 0o700); err != nil {
		return err
	}
	store, err := directory.Open(filepath.Join(t.Dir, StoreDir), directory.Config{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	for shape, err := range l.ends.store.List(ctx, ctxstore.ShapePrefix) {
		if err != nil {
			return err
		}
		entry, err := l.ends.store.Get(ctx, shape.URI)
		if err != nil {
			return err
		}
		if _, err := store.Put(ctx, shape.URI, entry.Value, ctxstore.PutOptions{}); err != nil {
			return err
		}
	}
	if err := os.WriteFile(l.Capture, l.capture.Bytes(), 0o600); err != nil {
		return err
	}
	runs := map[string]*bytes.Buffer{}
	end := map[[2]int]*bytes.Buffer{} // of directions: their last runs
	ends := map[[2]int]int64{}
	decoded, err := capture.Decode(ctx, &l.capture,
		capture.DecodeConfig{Store: store, Octets: func(stream, direction int, offset int64, b []byte) error {
			way := [2]int{stream, direction}
			if end[way] == nil || ends[way] != offset {
				end[way] = &bytes.Buffer{}
				runs[filepath.Join(l.Octets, capture.RunName(stream, direction, offset))] = end[way]
			}
			end[way].Write(b)
			ends[way] = offset + int64(len(b))
			return nil
		}})
	if err != nil {
		return err
	}
	var raw []capture.Input
	for name, octets := range runs {
		if err := os.WriteFile(name, octets.Bytes(), 0o600); err != nil {
			return err
		}
		raw = append(raw, capture.Input{Name: name, Octets: bytes.NewReader(octets.Bytes())})
	}
	rebuilt, err := capture.DecodeStreams(ctx, raw, capture.DecodeConfig{Store: store})
	if err != nil {
		return err
	}
	plain := 0 // requests that no stream carried
	if l.Name == Stream {
		plain = 1
	}
	l.Found, l.Rebuilt = found(t.sent, decoded.Messages, 0), found(t.sent, rebuilt.Messages, plain)
	l.Same = l.Same && l.Found == 2*l.Messages && l.Rebuilt == 2*l.Messages-plain
	return nil
}

// found counts messages that are as they were sent and as they came back, in their order, except
// for the first from ones. A pair of proxies has messages of its own, which are left out.
func found(sent []TourMessage, messages []*capture.Decoded, from int) (n int) {
	at := [2]int{from, 0} // requests, replies
	for _, m := range messages {
		if m.HHFR && m.Number == 0 || len(m.Body) == 0 || bytes.HasPrefix(m.Head, []byte{'='}) {
			continue
		}
		side := &at[0]
		if m.Reply {
			side = &at[1]
		}
		if *side < len(sent) && m.Whole() && bytes.Equal(m.Body, sent[*side].Body) {
			n++
		}
		*side++
	}
	if at != [2]int{len(sent), len(sent)} {
		return 0 // some are missing, or too many
	}
	return n
}

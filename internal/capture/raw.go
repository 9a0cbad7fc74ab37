package capture

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"

	"github.com/hhfr/hhfr/internal/flow"
)

var runName = regexp.MustCompile(`^(.*)-(\d+)\.bin$`)

// RunName returns the file name of a run: stream and direction, and the offset in the direction.
func RunName(stream, direction int, offset int64) string {
	return fmt.Sprintf("stream%d-%s-%d.bin", stream, [2]string{"out", "back"}[direction], offset)
}

// Streams decodes raw stream bytes, without any capture. Runs with names of the form
// NAME-OFFSET.bin are those of one direction NAME; others are directions of their own. Two
// directions that belong to one stream are combined, if they can be read twice.
func (r *Reader) Streams(ctx context.Context, runs ...Input) iter.Seq2[Event, error] {
	r.files = true
	var pairs []*rawStream
	return r.run(runs, func() error {
		directions, err := directionsOf(runs)
		if err != nil {
			return err
		}
		if r.twice {
			pairs = pair(directions, pairs)
		} else {
			pairs = apart(directions)
		}
		return r.rawStreams(ctx, pairs)
	})
}

// rawDirection is a direction of a stream in files.
type rawDirection struct {
	name string
	runs []rawPiece
	run  int   // index of the current run
	end  int64 // offset of what was read, once it has begun

	begun bool
}

type rawPiece struct {
	offset int64
	octets io.Reader
}

// rawStream is the directions of a stream.
type rawStream struct {
	*capturedConn
	dirs [2]*rawDirection // nil: it is not there
}

func directionsOf(runs []Input) (all []*rawDirection, err error) {
	named := map[string]*rawDirection{}
	for _, r := range runs {
		name, offset := r.Name, int64(0)
		if m := runName.FindStringSubmatch(filepath.Base(r.Name)); m != nil {
			if offset, err = strconv.ParseInt(m[2], 10, 64); err != nil {
				return nil, &flow.Error{Code: flow.Malformed, Err: fmt.Errorf("%s: offset: %w", r.Name, err)}
			}
			name = filepath.Join(filepath.Dir(r.Name), m[1])
		}
		if named[name] == nil {
			named[name] = &rawDirection{name: name}
			all = append(all, named[name])
		}
		named[name].runs = append(named[name].runs, rawPiece{offset, r.Octets})
	}
	slices.SortFunc(all, func(a, b *rawDirection) int { return bytes.Compare([]byte(a.name), []byte(b.name)) })
	for _, d := range all {
		slices.SortStableFunc(d.runs, func(a, b rawPiece) int { return int(min(1, max(-1, a.offset-b.offset))) })
	}
	return all, nil
}

// apart makes a stream of each direction.
func apart(directions []*rawDirection) (all []*rawStream) {
	for _, d := range directions {
		all = append(all, &rawStream{dirs: [2]*rawDirection{d}})
	}
	return all
}

// wayName matches the names that [RunName] gives directions.
var wayName = regexp.MustCompile(`^(.*stream\d+)-(out|back)$`)

// pair combines directions that belong to one stream, as was found when they were read apart: two
// of one session, one from each end. A session may have several streams. Names tell them apart
// where they are those of [RunName]; otherwise the first is combined with the first.
func pair(directions []*rawDirection, found []*rawStream) (all []*rawStream) {
	type half struct {
		session   [16]byte
		name      string
		responder bool
	}
	alone := map[half][]*rawStream{}
	for i, d := range directions {
		c := found[i].capturedConn
		if c.stream == nil {
			all = append(all, &rawStream{dirs: [2]*rawDirection{d}})
			continue
		}
		h := half{session: c.stream.Session, responder: c.ways[0].in.origin.Responder}
		if m := wayName.FindStringSubmatch(d.name); m != nil {
			h.name = m[1]
		}
		mate := h
		mate.responder = !h.responder
		side := 0
		if h.responder {
			side = 1
		}
		if waiting := alone[mate]; len(waiting) > 0 {
			waiting[0].dirs[side], alone[mate] = d, waiting[1:]
			continue
		}
		s := &rawStream{}
		s.dirs[side] = d
		alone[h] = append(alone[h], s)
		all = append(all, s)
	}
	return all
}

// rawStreams reads the streams, one after the other.
func (r *Reader) rawStreams(ctx context.Context, all []*rawStream) error {
	for i, s := range all {
		s.capturedConn = r.conn(&flow.Flow{ID: -1 - i})
		for k, d := range s.dirs {
			if d != nil {
				s.ways[k].past = r.rawFound(d.name)
			}
		}
		if err := s.read(ctx); err != nil {
			return err
		}
		if err := s.Closed(); err != nil {
			return err
		}
		for _, d := range s.dirs {
			if d != nil && s.stream == nil {
				r.summary.Others["files that are no hhfr stream: "+d.name]++
			}
		}
	}
	return ctx.Err()
}

// read reads both directions side by side, preferring the one that has fewer messages so far:
// replies come soon after their requests.
func (s *rawStream) read(ctx context.Context) error {
	buf := make([]byte, 4<<10)
	for ctx.Err() == nil {
		next := -1
		for i, d := range s.dirs {
			if d != nil && d.run < len(d.runs) && (next < 0 || s.ways[i].whole < s.ways[next].whole) {
				next = i
			}
		}
		if next < 0 {
			return nil
		}
		if err := s.dirs[next].read(s.capturedConn, next, buf); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// read passes the next bytes of a direction to a connection.
func (d *rawDirection) read(c *capturedConn, dir int, buf []byte) error {
	r := &d.runs[d.run]
	n, err := r.octets.Read(buf)
	if n > 0 {
		gap := int64(0)
		if d.begun { // otherwise it begins here, whatever its name says
			gap = max(r.offset-d.end, 0)
		}
		r.offset += int64(n)
		d.begun, d.end = true, r.offset
		if err := c.Octets(dir, gap, buf[:n], flow.Mark{}); err != nil {
			return err
		}
	}
	if errors.Is(err, io.EOF) {
		d.run++
		return nil
	}
	return err
}

// DecodeStreams decodes raw stream bytes, as [Reader.Streams] does, and keeps all messages.
func DecodeStreams(ctx context.Context, runs []Input, cfg DecodeConfig) (*Result, error) {
	r := NewReader(ctx, cfg)
	return r.collected(r.Streams(ctx, runs...))
}

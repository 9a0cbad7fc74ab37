package capture

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"

	"github.com/hhfr/hhfr/pkg/capture/flow"
)

// RawRun is the octets of one contiguous run of one direction of a stream, as [RunName] names it or with any name.
type RawRun struct {
	Name   string
	Octets []byte
}

var runName = regexp.MustCompile(`^(.*)-(\d+)\.bin$`)

// RunName is the file name of a run: stream and direction, and the offset in the direction.
func RunName(stream, direction int, offset int64) string {
	return fmt.Sprintf("stream%d-%s-%d.bin", stream, [2]string{"out", "back"}[direction], offset)
}

// DecodeStreams decodes raw stream octets, without any capture: runs with names of the form NAME-OFFSET.bin are those of one direction NAME; others are directions of their own.
// Two directions that belong to one session are put together.
func DecodeStreams(ctx context.Context, runs []RawRun, cfg DecodeConfig) (*Result, error) {
	dec := newDecoder(ctx, cfg)
	directions := map[string][]flow.Run{}
	for _, r := range runs {
		name, offset := r.Name, int64(0)
		if m := runName.FindStringSubmatch(filepath.Base(r.Name)); m != nil {
			n, err := strconv.ParseInt(m[2], 10, 64)
			if err != nil {
				return nil, &flow.Error{Code: flow.Malformed, Err: fmt.Errorf("%s: offset: %w", r.Name, err)}
			}
			name, offset = filepath.Join(filepath.Dir(r.Name), m[1]), n
		}
		directions[name] = append(directions[name], flow.Run{Offset: offset, Data: r.Octets, Marks: []flow.Mark{{}}})
	}
	bySession := map[[16]byte][2][]flow.Run{}
	var order [][16]byte
	for _, name := range slices.Sorted(maps.Keys(directions)) {
		list := directions[name]
		slices.SortFunc(list, func(a, b flow.Run) int { return cmp.Compare(a.Offset, b.Offset) })
		session, responder, ok := dec.identify(list)
		if !ok {
			dec.result.Others["files that are no hhfr stream: "+name]++
			continue
		}
		pair, seen := bySession[session]
		if !seen {
			order = append(order, session)
		}
		side := 0
		if responder || !responder && len(pair[0]) > 0 {
			side = 1
		}
		if len(pair[side]) > 0 {
			side = 1 - side
		}
		if len(pair[side]) > 0 {
			return nil, &flow.Error{Code: flow.Malformed, Err: fmt.Errorf("%s: more than two directions of one session", name)}
		}
		pair[side] = list
		bySession[session] = pair
	}
	for i, session := range order {
		s, messages := dec.decodeStream(bySession[session])
		for _, m := range messages {
			m.flow = i
		}
		dec.result.Streams = append(dec.result.Streams, s)
		dec.result.Messages = append(dec.result.Messages, messages...)
	}
	dec.putHeadersBack(ctx)
	dec.number()
	return dec.result, ctx.Err()
}

// identify finds out whose session a direction belongs to, and whether it is the responder's.
func (dec *decoder) identify(runs []flow.Run) (session [16]byte, responder, ok bool) {
	d := dec.survey([2][]flow.Run{runs})[0]
	return d.origin.Session, d.origin.Responder, d.found
}

package streamer_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/hhfr/hhfr/pkg/streamer"
)

// talk sends a request as a conversation: in writes of any length, with flushes and pauses, while
// the reply is read, as far as it is; now and then either is given up.
func (s *side) talk(lane *streamer.Lane, n uint64, patience time.Duration, rnd *rand.Rand) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	if patience > 0 {
		defer time.AfterFunc(patience, cancel).Stop()
	}
	call, w, err := lane.Start(ctx, binary.BigEndian.AppendUint64(nil, n|talking), -1)
	if err != nil {
		s.failed(ctx, n, err, false)
		return
	}
	aborts := s.cancels && rnd.IntN(8) == 0
	var writing sync.WaitGroup
	writing.Go(func() {
		err := inPieces(w, s.messages[n], rnd, aborts)
		if err != nil && !aborts {
			s.failed(ctx, n, err, errors.Is(err, &streamer.Error{Code: streamer.Aborted}))
		}
	})
	defer writing.Wait()
	for {
		m, err := call.Next(ctx)
		if err != nil {
			s.failed(ctx, n, err, aborts)
			return
		}
		b, err := m.ReadAll(1 << 30)
		switch {
		case err != nil && !m.Interim:
			s.failed(ctx, n, err, aborts)
		case err == nil && m.Interim && !bytes.Equal(b, m.Head):
			s.odd("interim reply to %d differs", n)
		case err == nil && !m.Interim && !aborts && !bytes.Equal(b, s.messages[n]):
			s.odd("reply %d differs: %d octets, not %d", n, len(b), len(s.messages[n]))
		}
		if !m.Interim {
			return
		}
	}
}

// inPieces writes a body in a few pieces, flushed or not, and closes it, or gives it up in the
// middle.
func inPieces(w *streamer.Writer, all []byte, rnd *rand.Rand, aborts bool) error {
	for range rnd.IntN(12) {
		n := rnd.IntN(len(all) + 1)
		_, err := w.Write(all[:n])
		all = all[n:]
		switch {
		case err != nil:
			return err
		case rnd.IntN(3) == 0:
			err = w.Flush()
		case rnd.IntN(10) == 0:
			time.Sleep(25 * time.Millisecond)
		case aborts && rnd.IntN(4) == 0:
			w.Abort(errors.New("given up"))
			return nil
		}
		if err != nil {
			return err
		}
	}
	if _, err := w.Write(all); err != nil {
		return err
	}
	return w.Close()
}

// talking in a number has the request answered while it comes.
const talking = 1 << 63

// answer echoes a request as it comes, maybe behind interim replies, some of which are given up.
func (s *side) answer(ctx context.Context, x *streamer.Exchange, n uint64) {
	rnd := rand.New(rand.NewPCG(n, 7))
	for range rnd.IntN(3) {
		said := bytes.Repeat([]byte("interim "), rnd.IntN(2000))
		m := streamer.NewMessage(said, said)
		brief, cancel := context.WithCancel(ctx)
		if rnd.IntN(4) == 0 {
			time.AfterFunc(time.Duration(rnd.IntN(300))*time.Microsecond, cancel)
		}
		_ = x.Interim(brief, m)
		cancel()
	}
	w, err := x.Respond(ctx, x.Message().Head, -1)
	if err != nil {
		return
	}
	all, buf := s.peer.messages[n], make([]byte, 1+rnd.IntN(20_000))
	for {
		n, err := x.Message().Body.Read(buf)
		if n > len(all) || !bytes.Equal(buf[:n], all[:n]) {
			s.odd("request in pieces differs")
		}
		all = all[min(n, len(all)):]
		if _, err := w.Write(buf[:n]); err != nil {
			return
		}
		switch {
		case errors.Is(err, io.EOF):
			if len(all) > 0 {
				s.odd("%d octets are missing of a request in pieces", len(all))
			}
			_ = w.Close()
			return
		case err != nil:
			w.Abort(err)
			return
		case rnd.IntN(2) == 0:
			_ = w.Flush()
		}
	}
}

package responder

import (
	"context"
	"errors"
	"io"
	"net/http"

	"github.com/hhfr/hhfr/internal/unchanging"
	"github.com/hhfr/hhfr/pkg/ctxstore"
	"github.com/hhfr/hhfr/pkg/negotiate"
	"github.com/hhfr/hhfr/pkg/soap"
	"github.com/hhfr/hhfr/pkg/streamer"
)

// fragments takes fragments of a common store in mid-session.
type fragments struct {
	cfg      *Config
	restorer *unchanging.Restorer // nil: there is no common store
}

// taking serves messages about fragments, which the initiator of a session with a common
// store may send in mid-session; others serves all else.
func (f fragments) taking(
	facts *negotiate.Facts, headers *unchanging.Lifter, others streamer.ExchangeHandler,
) streamer.ExchangeHandler {
	return func(ctx context.Context, x *streamer.Exchange) {
		if x.Lane() != negotiate.FragmentsLane {
			others(ctx, x)
			return
		}
		w := &exchangeWriter{ctx: ctx, x: x}
		if err := f.keep(ctx, facts, headers, x.Message().Body); err != nil {
			f.cfg.Log.Info("fragments not taken", "session", facts.Session.String(), "err", err)
			writeFault(f.cfg.Log, w, soap.V11, fragmentsFault(err))
		} else if kept, err := negotiate.FragmentsKept(); err == nil {
			writeMessage(f.cfg.Log, w, soap.V11, http.StatusOK, kept)
		}
		w.end(f.cfg.Log, facts.Path, true, nil)
	}
}

// keep reads the fragments that a message refers to: bodies may lack them from now on, in
// either direction.
func (f fragments) keep(
	ctx context.Context, facts *negotiate.Facts, headers *unchanging.Lifter, body io.Reader,
) error {
	data, err := io.ReadAll(io.LimitReader(body, negotiate.MaxOffer+1))
	if err != nil {
		return err
	}
	references, err := negotiate.ParseFragments(data)
	if err != nil {
		return err
	}
	if f.restorer == nil {
		return unchanging.ErrNoStore
	}
	blocks, err := f.restorer.Texts(ctx, facts.Common, references)
	if err != nil {
		return err
	}
	if f.cfg.UnchangingHeaders != nil {
		if err := f.cfg.UnchangingHeaders(facts.Path, blocks); err != nil {
			return err
		}
	}
	if !headers.Know(blocks) || !headers.Take(blocks) {
		return errors.New("too many fragments")
	}
	return nil
}

// fragmentsFault is the reply about fragments that are not taken. A store's error names files: it
// does not reach the peer.
func fragmentsFault(err error) soap.Fault {
	why := "the fragments cannot be taken"
	if errors.Is(err, ctxstore.NotFound) {
		why = "the fragments are not in the context store"
	}
	return soap.Fault{Code: soap.Server, Reason: why}
}

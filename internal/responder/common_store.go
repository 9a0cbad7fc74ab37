package responder

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/hhfr/hhfr/internal/unchanging"
	"github.com/hhfr/hhfr/pkg/negotiate"
	"github.com/hhfr/hhfr/pkg/soap"
)

// agreeCommon agrees to the common store of an offer, if it is that of this end.
func (r *Responder) agreeCommon(o *negotiate.Offer, a *negotiate.Answer) {
	switch {
	case o.Common == nil:
	case r.cfg.Common != nil && r.cfg.Common.URL == o.Common.URL:
		a.ContextStore = o.Common.URL
	default:
		why := "another one is used here, or none"
		a.Refused = append(a.Refused, negotiate.Declined{Item: "ContextStore", Why: why})
	}
}

// offeredHeaders returns the header blocks of an offer, those that it refers to included. Its error
// may be sent to the initiator.
func (r *Responder) offeredHeaders(ctx context.Context, o *negotiate.Offer, a *negotiate.Answer) ([]string, error) {
	if len(o.References) == 0 {
		return o.Headers, nil
	}
	if a.ContextStore == "" {
		return nil, errors.New("the blocks are in a context store that is not used here")
	}
	texts, err := r.restorer.Texts(ctx, o.Common, o.References)
	if err != nil {
		r.cfg.Log.Warn("unchanging headers not found in the common context store", "store", o.Common.URL, "err", err)
		return nil, errors.New("the blocks cannot be read from the context store")
	}
	return slices.Concat(o.Headers, texts), nil
}

// archived is how long something is kept that decodes recordings; 0: for good.
func (r *Responder) archived(ttl time.Duration) time.Duration {
	if r.cfg.Archive {
		return 0
	}
	return ttl
}

// dropScope is the reverse of [unchanging.KeepScope], for a session whose context is about to be
// deleted.
func (r *Responder) dropScope(ctx context.Context, id negotiate.SessionID) {
	if r.cfg.Common == nil {
		return
	}
	entry, err := r.cfg.Store.Get(ctx, id.URI())
	if err != nil {
		return
	}
	if facts, err := negotiate.ParseFacts(entry.Value); err == nil && facts.Common != nil {
		unchanging.DropScope(ctx, r.cfg.Store, &facts)
	}
}

// restore puts fragments back into a request, of which the beginning was read. false: that cannot
// be done, and the client has been told so.
func (r *Responder) restore(
	w http.ResponseWriter, req *http.Request, start []byte, err error,
) (_ []byte, _ error, ok bool) {
	if r.restorer == nil || req.Header.Get("Content-Encoding") != "" ||
		soap.ParseContentType(req.Header.Get("Content-Type")).Version() == soap.None {
		return start, err, true
	}
	start, err = unchanging.Beginning(start, err, req.Body)
	whole, fragments, failed := r.restorer.Restore(req.Context(), start)
	var lost *unchanging.Unrestored
	switch {
	case errors.As(failed, &lost):
		r.cfg.Log.Debug("message refused", "err", failed)
		r.fault(w, lost.Version, lost.Fault())
		return nil, nil, false
	case fragments == 0:
		return start, err, true
	}
	if req.ContentLength >= 0 {
		req.ContentLength += int64(len(whole) - len(start))
		req.Header.Set("Content-Length", strconv.FormatInt(req.ContentLength, 10))
	}
	return whole, err, true
}

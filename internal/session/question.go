package session

import (
	"context"
	"errors"
	"net/http"

	"github.com/hhfr/hhfr/pkg/negotiate"
)

// question asks for a stream with a request of its own.
func (n *negotiation) question(ctx context.Context) error {
	k := &ask{question: n}
	err := n.pose(ctx, k)
	switch {
	case k.n != nil: // maybe that of a call
		n.stream, n.coder, n.agreed = k.n.stream, k.n.coder, k.n.agreed
		return nil
	case k.invited != nil:
		return n.invited(ctx, k.invited)
	case err == nil:
		k.refused.undecided, k.refused.after = n.dialer.undecided(k.answer)
		return &k.refused
	}
	var own *negotiate.Error
	if errors.As(err, &own) {
		return own
	}
	err = n.noReply(ctx, err, k.conn != nil, "no answer to a request that asks for a stream: %w")
	refusalOf(err).undecided = k.answer == nil
	return err
}

// upgradedBeside reports whether a question has opened a stream by itself.
func (n *negotiation) upgradedBeside(ctx context.Context) bool {
	_ = n.pose(ctx, &ask{question: n, alone: true})
	if n.stream == nil {
		return false
	}
	n.tried(negotiate.FirstCall, nil)
	return true
}

// pose sends a question.
func (n *negotiation) pose(ctx context.Context, k *ask) error {
	req, err := http.NewRequestWithContext(context.WithValue(ctx, askKey{}, k), http.MethodOptions, n.url.String(), nil)
	if err != nil {
		return err
	}
	n.offerFields(req.Header)
	if req.Header["User-Agent"] == nil {
		req.Header["User-Agent"] = nil // net/http would add its own
	}
	resp, err := n.asker.RoundTrip(req)
	if err == nil {
		err = schemeReply(n.url, resp)
		_ = resp.Body.Close()
	}
	return err
}

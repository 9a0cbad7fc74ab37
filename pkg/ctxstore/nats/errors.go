package nats

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/hhfr/hhfr/pkg/ctxstore"
)

// Error codes of JetStream that the library has no names for.
const (
	codeAccountFull   jetstream.ErrorCode = 10002
	codeNoSystem      jetstream.ErrorCode = 10008
	codeNoLeader      jetstream.ErrorCode = 10009
	codeStorageFull   jetstream.ErrorCode = 10047
	codeStoreFailed   jetstream.ErrorCode = 10077
	codeOffline       jetstream.ErrorCode = 10118
	codeDuplicateSoon jetstream.ErrorCode = 10158
)

func codeOf(err error) jetstream.ErrorCode {
	if api := (*jetstream.APIError)(nil); errors.As(err, &api) {
		return api.ErrorCode
	}
	return 0
}

// passes reports whether an error may be gone at the next attempt: servers restart, elect a leader,
// or are slow.
func passes(err error) bool {
	return slices.Contains([]jetstream.ErrorCode{
		codeNoSystem, codeNoLeader, codeOffline, codeDuplicateSoon,
	}, codeOf(err)) || slices.ContainsFunc([]error{
		context.DeadlineExceeded, nats.ErrTimeout, nats.ErrNoResponders, nats.ErrConnectionReconnecting,
		nats.ErrReconnectBufExceeded, nats.ErrDisconnected, nats.ErrStaleConnection, nats.ErrNoServers,
		jetstream.ErrNoStreamResponse,
		jetstream.ErrMaximumConsumersLimit, // lists and watches end; those of killed processes after consumerLife
	}, func(target error) bool { return errors.Is(err, target) })
}

func isConflict(err error) bool {
	return slices.Contains([]jetstream.ErrorCode{
		jetstream.JSErrCodeStreamWrongLastSequence, jetstream.JSErrCodeStreamWrongLastSequenceConstant,
	}, codeOf(err))
}

// failed is an error of the library as one of a store.
func (b *Bucket) failed(ctx context.Context, uri string, err error) error {
	if err == nil {
		return nil
	}
	if own := (*ctxstore.Error)(nil); errors.As(err, &own) {
		return err
	}
	if e := b.access.Usable(ctx); e != nil {
		return e
	}
	e := &ctxstore.Error{Code: ctxstore.Unavailable, URI: uri, At: b.access.At, Err: err}
	switch code := codeOf(err); {
	case errors.Is(err, jetstream.ErrMsgNotFound), errors.Is(err, jetstream.ErrStreamNotFound):
		e.Code = ctxstore.NotFound
	case isConflict(err):
		e.Code = ctxstore.Conflict
	case code == codeAccountFull, code == codeStorageFull, isFull(err):
		e.Code, e.Hint = ctxstore.Full, "give the bucket more space: nats stream edit --max-bytes"
	case errors.Is(err, nats.ErrPermissionViolation):
		e.Code = ctxstore.Permission
	case errors.Is(err, jetstream.ErrJetStreamNotEnabled), errors.Is(err, jetstream.ErrJetStreamNotEnabledForAccount):
		e.Hint = "start the NATS servers with JetStream (-js)"
	}
	return e
}

// isFull reports whether the bucket has reached its limit.
func isFull(err error) bool {
	return codeOf(err) == codeStoreFailed && strings.Contains(err.Error(), "maximum bytes exceeded")
}

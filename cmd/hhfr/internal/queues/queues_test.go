package queues

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/soapjms"
	"github.com/hhfr/hhfr/pkg/ctxstore"
	"github.com/hhfr/hhfr/pkg/ctxstore/memory"
)

// away is a store that fails while err is not nil.
type away struct {
	ctxstore.Store
	err error
}

func (s *away) Get(ctx context.Context, uri string) (ctxstore.Entry, error) {
	if s.err != nil {
		return ctxstore.Entry{}, s.err
	}
	return s.Store.Get(ctx, uri)
}

// TestContentOfAStoreThatFails: content comes again where its store fails, and is refused where
// that has no shape for it.
func TestContentOfAStoreThatFails(t *testing.T) {
	const message = `<s:Envelope xmlns:s="http://schemas.xmlsoap.org/soap/envelope/"><s:Body><a>1</a></s:Body>` +
		`</s:Envelope>`
	store := memory.New(memory.Config{})
	t.Cleanup(func() { assert.NoError(t, store.Close()) })
	packed, err := ShapesOf("nats:", store).content().Pack([]byte(message))
	require.NoError(t, err)
	reads := &away{Store: store, err: &ctxstore.Error{Code: ctxstore.Unavailable}}
	form := ShapesOf("nats:", reads).content()
	_, err = form.Unpack(packed, 1<<20)
	require.ErrorIs(t, err, soapjms.ErrNotNow)
	reads.err = &ctxstore.Error{Code: ctxstore.NotFound}
	_, err = form.Unpack(packed, 1<<20)
	require.Error(t, err)
	require.NotErrorIs(t, err, soapjms.ErrNotNow)
	reads.err = nil
	got, err := form.Unpack(packed, 1<<20)
	require.NoError(t, err)
	assert.Equal(t, message, string(got))

	assert.Nil(t, ShapesOf("", store).content())
	assert.Nil(t, ShapesOf("mem:", store).content())
}

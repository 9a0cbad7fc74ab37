package wscontext_test

import (
	"errors"
	"strconv"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/pkg/ctxstore"
	"github.com/hhfr/hhfr/pkg/ctxstore/memory"
	"github.com/hhfr/hhfr/pkg/ctxstore/storetest"
	"github.com/hhfr/hhfr/pkg/ctxstore/wscontext"
)

// Clients that count by setContents with an expected version lose no update.
func TestNoUpdateIsLost(t *testing.T) {
	s, store := serveMemory(t, memory.Config{})
	var wg sync.WaitGroup
	for range 4 {
		r := s.open(t)
		t.Cleanup(func() { assert.NoError(t, r.Close()) })
		wg.Go(func() { storetest.Count(t, r, "urn:x", 50) })
	}
	wg.Wait()
	e, err := store.Get(t.Context(), "urn:x")
	require.NoError(t, err)
	assert.Equal(t, "200", string(e.Value))
}

// Once complete was answered, no contents change: every setContents before it is answered with a
// version, every one after it with a fault.
func TestNothingChangesAfterTheEnd(t *testing.T) {
	s, store := serveMemory(t, memory.Config{})
	h, err := wscontext.NewContextServiceHandler("http://localhost/", wscontext.ClientConfig{Transport: s.transport()})
	require.NoError(t, err)
	defer func() { assert.NoError(t, h.Close()) }()
	for range 20 {
		uri, err := h.Begin(t.Context(), "", "", 0, nil)
		require.NoError(t, err)
		var wg sync.WaitGroup
		for i := range 4 {
			wg.Go(func() {
				for n := 0; ; n++ {
					err := h.SetContent(t.Context(), uri, []byte(strconv.Itoa(i)+"/"+strconv.Itoa(n)))
					if err != nil {
						assert.True(t, errors.Is(err, &ctxstore.Error{Code: ctxstore.Permission}), "%v", err)
						return
					}
				}
			})
		}
		require.NoError(t, h.Complete(t.Context(), uri))
		last, err := store.Get(t.Context(), uri)
		require.NoError(t, err)
		wg.Wait()
		after, err := store.Get(t.Context(), uri)
		require.NoError(t, err)
		assert.Equal(t, last, after)
	}
}

func BenchmarkGetContents(b *testing.B) {
	store := memory.New(memory.Config{})
	defer func() { assert.NoError(b, store.Close()) }()
	service, err := wscontext.New(wscontext.Config{Store: store})
	require.NoError(b, err)
	h, err := wscontext.NewContextServiceHandler("http://localhost/",
		wscontext.ClientConfig{Transport: local{direct{service}}})
	require.NoError(b, err)
	block := []byte(`<wsrm:Sequence xmlns:wsrm="http://schemas.xmlsoap.org/ws/2005/02/rm"/>`)
	require.NoError(b, h.SetContent(b.Context(), "urn:x", block))
	for b.Loop() {
		_, err := h.GetContent(b.Context(), "urn:x")
		require.NoError(b, err)
	}
}

package memory_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/pkg/ctxstore"
	"github.com/hhfr/hhfr/pkg/ctxstore/memory"
)

// Whatever values are like, each is what was put, also when those it is like are gone.
func TestAlikeValues(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 7))
	s := memory.New(memory.Config{})
	want := map[string][]byte{}
	kinds := make([][]byte, 20)
	for i := range kinds {
		kinds[i] = make([]byte, random.IntN(3000))
		for j := range kinds[i] {
			kinds[i][j] = byte(random.Uint32())
		}
	}
	check := func() {
		var size int64
		for info, err := range s.List(t.Context(), "") {
			require.NoError(t, err)
			assert.EqualValues(t, len(want[info.URI]), info.Size)
			size++
		}
		assert.EqualValues(t, len(want), size)
		for uri, value := range want {
			got, err := s.Get(t.Context(), uri)
			require.NoError(t, err)
			require.True(t, bytes.Equal(value, got.Value), uri)
			for i := range got.Value {
				got.Value[i]++ // it belongs to the caller
			}
		}
	}
	for n := range 3000 {
		value := bytes.Clone(kinds[min(random.IntN(len(kinds)), random.IntN(len(kinds)))])
		for range random.IntN(12) {
			if at := random.IntN(len(value) + 1); at < len(value) {
				value[at] = byte(random.Uint32())
			}
		}
		if len(value) > 0 && n%3 == 0 {
			value[0]++
			value[len(value)-1]++
		}
		uri := fmt.Sprintf("urn:%d", random.IntN(300))
		if n%11 == 0 && want[uri] != nil {
			require.NoError(t, s.Delete(t.Context(), uri, nil))
			delete(want, uri)
			continue
		}
		_, err := s.Put(t.Context(), uri, value, ctxstore.PutOptions{})
		require.NoError(t, err)
		want[uri] = bytes.Clone(value)
		clear(value) // it is copied
		if n%500 == 0 {
			check()
		}
	}
	check()
	require.NoError(t, s.Close())
}

// Contexts of sessions, which differ in little, take little memory.
func TestAlikeValuesTakeLittle(t *testing.T) {
	const sessions, most = 10_000, 320
	s := memory.New(memory.Config{})
	whole := bytes.Repeat([]byte("<Limit>16384</Limit>"), 45)
	before := live()
	for n := range sessions {
		var id [16]byte
		id[3], id[15] = byte(n>>8), byte(n)
		value := fmt.Appendf(nil, "<Session>%X</Session><Expires>%d</Expires>%s", id, 1e9+n, whole)
		_, err := s.Put(t.Context(), ctxstore.SessionURI(id), value, ctxstore.PutOptions{})
		require.NoError(t, err)
		if n%100 == 0 { // and others in between
			_, err := s.Put(t.Context(), "urn:other", bytes.Repeat([]byte{byte(n)}, 200), ctxstore.PutOptions{})
			require.NoError(t, err)
		}
	}
	assert.Less(t, (live()-before)/sessions, int64(most), "bytes of memory for each")
	require.NoError(t, s.Close())
}

// live is how many bytes of memory are in use.
func live() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

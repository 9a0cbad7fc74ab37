package solo_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/hhfr/hhfr/internal/codec/binary"
	"github.com/hhfr/hhfr/internal/shared"
	"github.com/hhfr/hhfr/internal/solo"
	"github.com/hhfr/hhfr/pkg/ctxstore"
	"github.com/hhfr/hhfr/pkg/ctxstore/memory"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const most = 64 << 20

func codec(store ctxstore.Store) *solo.MessageCodec {
	return solo.New(store, binary.NewBook(ctxstore.Shapes{Store: store}))
}

func newStore(t testing.TB) ctxstore.Store {
	store := memory.New(memory.Config{})
	t.Cleanup(func() { _ = store.Close() })
	return store
}

// own are the messages here, each of which comes again, and others that are none.
func own(t testing.TB) (messages [][]byte) {
	for range 2 {
		for _, path := range shared.Files(t, shared.Testdata(t, "soap"), func(p string) bool {
			return filepath.Ext(p) == ".xml"
		}) {
			messages = append(messages, shared.Read(t, path))
		}
	}
	return append(messages, nil, []byte("no XML"), bytes.Repeat([]byte("<a>1</a>"), 1<<18))
}

func requireAlone(t *testing.T, messages [][]byte) {
	store := newStore(t)
	sender := codec(store)
	var packed [][]byte
	for _, m := range messages {
		p, err := sender.Pack(m)
		require.NoError(t, err)
		packed = append(packed, p)
	}
	for i := range packed { // from the last on, each by a reader that has read nothing else
		i = len(packed) - 1 - i
		got, err := codec(store).Unpack(packed[i], most)
		require.NoError(t, err)
		require.True(t, bytes.Equal(messages[i], got), "message %d", i)
	}
}

func TestEachIsReadAlone(t *testing.T) { requireAlone(t, own(t)) }

func TestEachIsReadAloneOnTheCorpus(t *testing.T) {
	var messages [][]byte
	for _, path := range shared.SomeMessages(t) {
		messages = append(messages, shared.Read(t, path))
	}
	requireAlone(t, messages)
}

func TestConcurrently(t *testing.T) {
	store := newStore(t)
	one, other := codec(store), codec(store)
	var wait sync.WaitGroup
	for i := range 8 {
		wait.Go(func() {
			for j := range 50 {
				want := fmt.Sprintf(`<e xmlns="urn:e"><n>%d</n><text>%s</text></e>`, i*j, strings.Repeat("x", j))
				packed, err := one.Pack([]byte(want))
				require.NoError(t, err)
				got, err := other.Unpack(packed, most)
				require.NoError(t, err)
				require.Equal(t, want, string(got))
			}
		})
	}
	wait.Wait()
}

func TestWhatCannotBeRead(t *testing.T) {
	store := newStore(t)
	message := own(t)[0]
	sender := codec(store)
	packed, err := sender.Pack(message)
	require.NoError(t, err)
	_, err = codec(newStore(t)).Unpack(packed, most)
	require.ErrorIs(t, err, &solo.Error{Code: solo.UnknownShape})
	assert.ErrorContains(t, err, "urn:hhfr:shape:sha256:")
	_, err = sender.Unpack(packed, len(message)-1)
	require.ErrorIs(t, err, &solo.Error{Code: solo.TooLarge})
	_, err = sender.Unpack(append(bytes.Clone(packed), packed...), most)
	require.ErrorIs(t, err, &solo.Error{Code: solo.Malformed})
	for n := range packed {
		_, err := sender.Unpack(packed[:n], most)
		require.ErrorIs(t, err, &solo.Error{Code: solo.Malformed}, "cut after %d", n)
	}
	for i := range packed {
		for bit := range 8 {
			flipped := bytes.Clone(packed)
			flipped[i] ^= 1 << bit
			_, err := sender.Unpack(flipped, most)
			require.Error(t, err, "bit %d of byte %d", bit, i)
		}
	}
}

// A store that takes nothing costs shapes, and no message.
func TestStoreFails(t *testing.T) {
	store := failing{newStore(t)}
	message := own(t)[0]
	packed, err := codec(store).Pack(message)
	require.NoError(t, err)
	got, err := codec(newStore(t)).Unpack(packed, most)
	require.NoError(t, err)
	assert.Equal(t, message, got)
	_, err = codec(store).Mark(t.Context())
	require.Error(t, err)
}

// A store that fails for a moment is no store without the shape.
func TestStoreFailsForAMoment(t *testing.T) {
	store := newStore(t)
	message := own(t)[0]
	packed, err := codec(store).Pack(message)
	require.NoError(t, err)
	away := &unavailable{Store: store}
	c := codec(away)
	for code, want := range map[ctxstore.Code]solo.Code{
		ctxstore.Unavailable: solo.StoreFailed, ctxstore.Closed: solo.StoreFailed,
		ctxstore.Permission: solo.StoreFailed,
		ctxstore.NotFound:   solo.UnknownShape, ctxstore.Corrupt: solo.UnknownShape,
	} {
		away.err = &ctxstore.Error{Code: code}
		_, err = c.Unpack(packed, most)
		require.ErrorIs(t, err, &solo.Error{Code: want}, code)
	}
	away.err = context.DeadlineExceeded
	_, err = c.Unpack(packed, most)
	require.ErrorIs(t, err, &solo.Error{Code: solo.StoreFailed})
	require.ErrorIs(t, err, context.DeadlineExceeded)
	away.err = nil
	got, err := c.Unpack(packed, most)
	require.NoError(t, err)
	assert.Equal(t, message, got)
}

type unavailable struct {
	ctxstore.Store
	err error // nil: it is there
}

func (u *unavailable) Get(ctx context.Context, uri string) (ctxstore.Entry, error) {
	if u.err != nil {
		return ctxstore.Entry{}, u.err
	}
	return u.Store.Get(ctx, uri)
}

type failing struct{ ctxstore.Store }

func (failing) Put(_ context.Context, _ string, _ []byte, _ ctxstore.PutOptions) (uint64, error) {
	return 0, errors.New("no space")
}

func TestMark(t *testing.T) {
	store := newStore(t)
	one := codec(store)
	uri, err := one.Mark(t.Context())
	require.NoError(t, err)
	again, err := one.Mark(t.Context())
	require.NoError(t, err)
	assert.Equal(t, uri, again)
	same, err := codec(store).Shares(t.Context(), uri)
	require.NoError(t, err)
	assert.True(t, same)
	same, err = codec(newStore(t)).Shares(t.Context(), uri)
	require.NoError(t, err)
	assert.False(t, same)
}

func FuzzUnpack(f *testing.F) {
	store := newStore(f)
	c := codec(store)
	for _, m := range own(f) {
		if len(m) < 1<<12 {
			packed, err := c.Pack(m)
			require.NoError(f, err)
			f.Add(packed)
		}
	}
	f.Fuzz(func(t *testing.T, packed []byte) {
		got, err := c.Unpack(packed, 1<<20)
		if err == nil {
			require.LessOrEqual(t, len(got), 1<<20)
		}
	})
}

// TestSizes measures what a message takes, by itself, in bytes: plain, by gzip, and as content,
// where each kind has been there before.
func TestSizes(t *testing.T) {
	root := shared.Dir(t, "workloads")
	folders, err := os.ReadDir(root)
	require.NoError(t, err)
	for _, folder := range folders {
		if !folder.IsDir() {
			continue
		}
		store := newStore(t)
		c := codec(store)
		var plain, zipped, packed, n int
		for i, path := range shared.Files(t, filepath.Join(root, folder.Name()), func(p string) bool {
			return filepath.Ext(p) == ".xml"
		}) {
			m := shared.Read(t, path)
			p, err := c.Pack(m)
			require.NoError(t, err)
			if i == 0 {
				continue
			}
			var z bytes.Buffer
			w := gzip.NewWriter(&z)
			_, err = w.Write(m)
			require.NoError(t, errors.Join(err, w.Close()))
			plain, zipped, packed, n = plain+len(m), zipped+z.Len(), packed+len(p), n+1
		}
		t.Logf("%-16s %7d plain %7d gzip %7d content", folder.Name(), plain/n, zipped/n, packed/n)
		assert.Less(t, packed, zipped, folder.Name())
	}
}

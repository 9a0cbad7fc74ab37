package transcode_test

import (
	"bytes"
	"errors"
	"iter"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/hhfr/hhfr/internal/capture"
	"github.com/hhfr/hhfr/internal/shared"
	"github.com/hhfr/hhfr/internal/transcode"
	"github.com/hhfr/hhfr/pkg/ctxstore"
	"github.com/hhfr/hhfr/pkg/ctxstore/memory"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func inputs(messages [][]byte) iter.Seq2[transcode.Packable, error] {
	return func(yield func(transcode.Packable, error) bool) {
		for _, m := range messages {
			if !yield(transcode.Packable{Name: "m", Body: bytes.NewReader(m)}, nil) {
				return
			}
		}
	}
}

func requirePacked(t *testing.T, messages [][]byte, cfg transcode.Config, store ctxstore.Store) transcode.Figures {
	var file bytes.Buffer
	n := 0
	total, err := transcode.Pack(t.Context(), &file, inputs(messages), cfg, func(f transcode.Figures) error {
		assert.Equal(t, int64(len(messages[n])), f.Raw)
		assert.Positive(t, f.Frames)
		n++
		return nil
	})
	require.NoError(t, err)
	require.Equal(t, len(messages), n)
	r, err := capture.DecodeStreams(t.Context(),
		[]capture.Input{{Name: "F.hhfr", Octets: bytes.NewReader(file.Bytes())}}, capture.DecodeConfig{Store: store})
	require.NoError(t, err)
	require.Len(t, r.Messages, len(messages))
	assert.False(t, r.Partial())
	for i, m := range r.Messages {
		require.True(t, bytes.Equal(messages[i], m.Body), "message %d", i+1)
		assert.Equal(t, i+1, m.Number)
	}
	return total
}

func own(t *testing.T) (messages [][]byte) {
	for range 2 {
		for _, path := range shared.Files(t, shared.Testdata(t, "soap"), func(p string) bool {
			return filepath.Ext(p) == ".xml"
		}) {
			messages = append(messages, shared.Read(t, path))
		}
	}
	return append(messages, nil, []byte("no XML"))
}

func TestPackWithShapesInside(t *testing.T) {
	total := requirePacked(t, own(t), transcode.Config{Measure: true, SyncBytes: 2048}, nil)
	assert.Positive(t, total.Shape)
	assert.Positive(t, total.Gzip)
	assert.Positive(t, total.Zstd)
	assert.Positive(t, total.Learned)
	assert.Less(t, total.Frames, total.Raw)
}

func TestPackWithShapesInTheStore(t *testing.T) {
	store := memory.New(memory.Config{})
	defer func() { _ = store.Close() }()
	inside := requirePacked(t, own(t), transcode.Config{}, nil)
	total := requirePacked(t, own(t), transcode.Config{Store: store}, store)
	assert.Less(t, total.Shape+total.Frames, inside.Shape+inside.Frames)
}

func TestPackTheCorpus(t *testing.T) {
	var messages [][]byte
	for _, path := range shared.Messages(t) {
		messages = append(messages, shared.Read(t, path))
	}
	total := requirePacked(t, messages, transcode.Config{Measure: true}, nil)
	t.Logf("%+v", total)
}

func TestPackReportsWhatFails(t *testing.T) {
	broken := errors.New("no space left")
	_, err := transcode.Pack(t.Context(), failing{broken}, inputs(own(t)), transcode.Config{}, nil)
	assert.ErrorIs(t, err, broken)
	_, err = transcode.Pack(t.Context(), &bytes.Buffer{}, func(yield func(transcode.Packable,
		error) bool) {
		yield(transcode.Packable{}, broken)
	}, transcode.Config{}, nil)
	assert.ErrorIs(t, err, broken)
}

type failing struct{ err error }

func (f failing) Write([]byte) (int, error) { return 0, f.err }
